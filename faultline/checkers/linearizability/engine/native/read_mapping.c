/* Which write each read saw, where values repeat: see ../read_mapping.py, which explains the idea and which this follows. */

#define PAIRS_PER_OPERATION 2

typedef struct {
    const Problem *p;
    Problem q;           /* p, with a number of its own for what each write puts; unsure reads constrain nothing in it */
    int32_t *first;      /* by value of p: where its writes begin in `writes`; one more for the end */
    int32_t *writes;     /* by value, then in order of call */
    int32_t *reach;      /* beside `writes`: the latest return of this and the earlier writes of the value */
    int32_t *overwriter; /* by operation: of the writes that returned before its call the one called last, or NONE */
    int32_t *unsure, unsure_count; /* reads with several possible writes, in order of call */
    int32_t *begin, *pairs;        /* beside `unsure`, and one more: where the numbers of possible writes begin in `pairs` */
    uint8_t *is_named;             /* by operation: 1, it is in the core; 2, so are its grounds; 4, so are those of its chain */
    int32_t *core, core_size;
} Mapping;

/* -- the possible writes of a read ---------------------------------------------------------------------------------- */

/* Number what each write puts, in order of call, and list the writes of each value of p; whether a value repeats. */
static int number_writes(Mapping *m) {
    const Problem *p = m->p;
    Problem *q = &m->q;
    int32_t number = INITIAL, is_repeated = 0, *end = TAKE(p->arena, int32_t, p->values);
    m->first = TAKE_ZEROED(p->arena, int32_t, p->values + 1);
    for (int32_t i = 0; i < p->size; i++) {
        if (p->kind[i] < WRITE) continue;
        is_repeated |= m->first[p->produce[i] + 1]++ > 0 || p->produce[i] == INITIAL;
    }
    if (!is_repeated) {
        m->first = NULL;
        return 0;
    }
    for (int32_t v = 0; v < p->values; v++) m->first[v + 1] += m->first[v];
    memcpy(end, m->first, (size_t)p->values * sizeof *end);
    m->writes = TAKE(p->arena, int32_t, p->size);
    m->reach = TAKE(p->arena, int32_t, p->size);
    q->kind = memcpy(TAKE(p->arena, uint8_t, p->size), p->kind, (size_t)p->size);
    q->demand = TAKE_ZEROED(p->arena, int32_t, p->size);
    q->produce = TAKE_ZEROED(p->arena, int32_t, p->size);
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k], v = p->produce[i];
        if (p->kind[i] < WRITE) continue;
        q->produce[i] = ++number;
        int32_t at = end[v]++, is_first = at == m->first[v];
        m->writes[at] = i;
        m->reach[at] = is_first || p->return_at[i] > m->reach[at - 1] ? p->return_at[i] : m->reach[at - 1];
    }
    q->values = number + 2; /* no write puts the last one: it stands for every value that is never put */
    return 1;
}

static void find_overwriters(Mapping *m) {
    const Problem *p = m->p;
    int32_t latest = NONE, r = 0;
    m->overwriter = TAKE(p->arena, int32_t, p->size);
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k];
        for (; r < p->completed && p->return_at[p->by_return[r]] < p->call_at[i]; r++) {
            int32_t done = p->by_return[r];
            if (p->kind[done] >= WRITE && (latest == NONE || p->call_at[done] > p->call_at[latest])) latest = done;
        }
        m->overwriter[i] = latest;
    }
}

static int has_several_writes(const Mapping *m, int32_t v) {
    return m->first && m->first[v + 1] - m->first[v] + (v == INITIAL) > 1;
}

/* Put the numbers of the writes that `i` may have seen into `found`; how many, or -1 when more than `count_max` are looked at. */
static int32_t possible_writes(const Mapping *m, int32_t i, int32_t *found, int32_t count_max) {
    const Problem *p = m->p;
    int32_t v = p->demand[i], low = m->first[v], high = m->first[v + 1], count = 0, looked_at = 0;
    int32_t overwriter = m->overwriter[i], overwritten_at = overwriter == NONE ? -1 : p->call_at[overwriter];
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (p->call_at[m->writes[middle]] < p->return_at[i]) low = middle + 1;
        else high = middle;
    }
    for (int32_t k = low - 1; k >= m->first[v] && m->reach[k] > overwritten_at; k--) {
        if (looked_at++ >= count_max) return -1;
        int32_t writer = m->writes[k];
        if (p->return_at[writer] > overwritten_at && writer != i) found[count++] = m->q.produce[writer];
    }
    if (v == INITIAL && overwriter == NONE) {
        if (looked_at >= count_max) return -1;
        found[count++] = INITIAL;
    }
    return count;
}

/* -- the core of a refusal -------------------------------------------------------------------------------------------- */

static void name(Mapping *m, int32_t i) {
    if (i == NONE || m->is_named[i] & 1) return;
    m->is_named[i] |= 1;
    m->core[m->core_size++] = i;
}

/* Name `i` with its grounds: of a read of a repeated value, the writes of that value and the one that overwrote others. */
static void name_read(Mapping *m, int32_t i) {
    const Problem *p = m->p;
    if (m->is_named[i] & 2) return;
    m->is_named[i] |= 2;
    name(m, i);
    if ((p->kind[i] != OBSERVE && p->kind[i] != SWAP) || !has_several_writes(m, p->demand[i])) return;
    for (int32_t k = m->first[p->demand[i]]; k < m->first[p->demand[i] + 1]; k++) name(m, m->writes[k]);
    name(m, m->overwriter[i]);
}

/* Name `i`; if it is pending, with the one that saw it, up to one that returned; and the compare-and-sets before it in
   its chain, as far as they saw a repeated value: whether these are in the chain depends on other writes. */
static void name_in_chain(Mapping *m, const Clusters *c, int32_t i) {
    const Problem *p = m->p, *q = &m->q;
    if (i == NONE) return;
    for (int32_t seer = i; seer != NONE; seer = c->seer[q->produce[seer]]) {
        name_read(m, seer);
        if (p->return_at[seer] != NEVER || p->kind[seer] < WRITE) break;
    }
    while (!(m->is_named[i] & 4)) {
        m->is_named[i] |= 4;
        if (has_several_writes(m, p->demand[i])) name_read(m, i);
        if (q->kind[i] != OBSERVE && q->kind[i] != SWAP) return;
        int32_t writer = c->writer[q->demand[i]];
        if (writer == NONE || q->kind[writer] != SWAP) return;
        i = writer;
    }
}

/* -- mapping ---------------------------------------------------------------------------------------------------------- */

/* Map each read to the number of the write that it saw; of one that may have seen several, only list these. UNKNOWN when
   that is sure for too few, ILLEGAL with a core when a read can have seen none. */
static int map_reads(Mapping *m) {
    const Problem *p = m->p;
    Problem *q = &m->q;
    int32_t pairs_max = PAIRS_PER_OPERATION * p->size, count = 0;
    find_overwriters(m);
    m->unsure = TAKE(p->arena, int32_t, p->size);
    m->begin = TAKE(p->arena, int32_t, p->size + 1);
    m->pairs = TAKE(p->arena, int32_t, pairs_max + 1);
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k], v = p->demand[i], possible = 1;
        if (p->kind[i] != OBSERVE && p->kind[i] != SWAP) continue;
        m->pairs[count] = v == INITIAL ? INITIAL : q->values - 1;
        if (has_several_writes(m, v)) possible = possible_writes(m, i, m->pairs + count, pairs_max - count);
        else if (m->first[v] < m->first[v + 1]) m->pairs[count] = q->produce[m->writes[m->first[v]]];
        if (possible < 0) return UNKNOWN;
        if (!possible && p->return_at[i] != NEVER) {
            name_read(m, i);
            return ILLEGAL;
        }
        q->demand[i] = possible ? m->pairs[count] : q->values - 1;
        if (possible < 2) continue;
        q->kind[i] = p->kind[i] == OBSERVE ? AVOID : WRITE;
        m->begin[m->unsure_count] = count;
        m->unsure[m->unsure_count++] = i;
        count += possible;
    }
    m->begin[m->unsure_count] = count;
    return LEGAL;
}
