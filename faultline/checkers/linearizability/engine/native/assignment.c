/* Assign to each unsure read one of its possible writes, so that the zones do not contradict each other: see
   ../assignment.py, which explains why components can be searched apart, and which this follows. */

#define TRIES_PER_COMPONENT 4096
#define TRIES_PER_PAIR 4

typedef struct {
    int32_t place;             /* next possible write to try, in `pairs` */
    int32_t zone, joined;      /* the zone that the read was added to; the zone that was joined to it, or NOBODY */
    int32_t touched_count;
    Zone before;
} Level;

typedef struct {
    Mapping *m;
    const Clusters *c;
    int32_t count;             /* zones; first those that stand, then those of pending writes that no sure read saw */
    Zone *fixed, *now;         /* without unsure reads; with those assigned so far */
    int32_t *zone_of;          /* by number: its zone, or NOBODY */
    int32_t *into;             /* by zone: the one that it was joined to, or NOBODY */
    int32_t *follower;         /* by number: the unsure compare-and-set that was assigned to it, or NOBODY */
    int32_t *latest, *second;  /* by position: of the zones with a return before it, the two with the latest last calls */
    int32_t *parent;           /* by zone: union-find of components */
    int32_t *touched, touched_count;
    int32_t *chosen;           /* beside `unsure`: the number assigned; NOBODY */
    int64_t tries_left;
} Assignment;

static int32_t root_of(const Assignment *a, int32_t z) {
    while (a->into[z] != NOBODY) z = a->into[z];
    return z;
}

static int32_t component_of(Assignment *a, int32_t z) {
    while (a->parent[z] != z) z = a->parent[z] = a->parent[a->parent[z]];
    return z;
}

static void extend(Zone *zone, int32_t first_return, int32_t first_returning, int32_t last_call, int32_t last_called) {
    if (first_return < zone->first_return) {
        zone->first_return = first_return;
        zone->first_returning = first_returning;
    }
    if (last_call > zone->last_call) {
        zone->last_call = last_call;
        zone->last_called = last_called;
    }
}

/* Number the zones, and find for each position the two zones that reach furthest of those with a return before it. */
static void index_zones(Assignment *a, const Zone *zones, int32_t count) {
    const Problem *q = &a->m->q;
    Arena *arena = q->arena;
    int32_t pairs = a->m->begin[a->m->unsure_count], events = 2 * q->size + 2, room = count + pairs;
    a->fixed = TAKE(arena, Zone, room);
    a->now = TAKE(arena, Zone, room);
    a->zone_of = TAKE(arena, int32_t, q->values);
    a->follower = TAKE(arena, int32_t, q->values);
    a->latest = TAKE(arena, int32_t, events);
    a->second = TAKE(arena, int32_t, events);
    memset(a->zone_of, 0xff, (size_t)q->values * sizeof *a->zone_of);
    memset(a->follower, 0xff, (size_t)q->values * sizeof *a->follower);
    memset(a->latest, 0xff, (size_t)events * sizeof *a->latest);
    for (int32_t z = 0; z < count; z++) {
        a->fixed[z] = zones[z];
        a->latest[zones[z].first_return + 1] = z;
        for (int32_t v = zones[z].value;; v = q->produce[a->c->next[v]]) {
            a->zone_of[v] = z;
            if (a->c->next[v] == NOBODY) break;
        }
    }
    /* latest[t] held the zone whose first return is t - 1; from here on it is the furthest of all up to there. */
    int32_t best = NOBODY, next_best = NOBODY;
    for (int32_t t = 0; t < events; t++) {
        int32_t z = a->latest[t];
        if (z != NOBODY && (best == NOBODY || zones[z].last_call > zones[best].last_call)) {
            next_best = best;
            best = z;
        } else if (z != NOBODY && (next_best == NOBODY || zones[z].last_call > zones[next_best].last_call)) {
            next_best = z;
        }
        a->latest[t] = best;
        a->second[t] = next_best;
    }
    a->count = count;
    for (int32_t k = 0; k < pairs; k++) {
        int32_t number = a->m->pairs[k];
        if (a->zone_of[number] != NOBODY) continue;
        a->zone_of[number] = a->count;
        a->fixed[a->count++] = (Zone){number, NEVER, -1, NOBODY, NOBODY};
    }
    memcpy(a->now, a->fixed, (size_t)a->count * sizeof *a->now);
    a->into = TAKE(arena, int32_t, a->count);
    a->parent = TAKE(arena, int32_t, a->count);
    a->touched = TAKE(arena, int32_t, a->m->unsure_count + 1);
    memset(a->into, 0xff, (size_t)a->count * sizeof *a->into);
    for (int32_t z = 0; z < a->count; z++) a->parent[z] = z;
}

static void name_zone(Assignment *a, const Zone *zone) {
    name_in_chain(a->m, a->c, zone->first_returning);
    name_in_chain(a->m, a->c, zone->last_called);
}

/* Whether `zone`, made of the zones x and y, and another one must come before each other; then their ends are named. */
static int is_contradicted(Assignment *a, const Zone *zone, int32_t x, int32_t y) {
    const Zone *other = NULL;
    if (zone->last_call >= 0) {
        int32_t z = a->latest[zone->last_call];
        if (z != NOBODY && (root_of(a, z) == x || root_of(a, z) == y)) z = a->second[zone->last_call];
        if (z != NOBODY && root_of(a, z) != x && root_of(a, z) != y && a->fixed[z].last_call > zone->first_return)
            other = &a->fixed[z];
    }
    for (int32_t k = 0; !other && k < a->touched_count; k++) {
        int32_t z = a->touched[k];
        if (z == x || z == y || a->into[z] != NOBODY) continue;
        if (a->now[z].first_return < zone->last_call && zone->first_return < a->now[z].last_call) other = &a->now[z];
    }
    if (!other) return 0;
    name_zone(a, zone);
    name_zone(a, other);
    return 1;
}

/* Assign the write of `number` to read k; 0 when that contradicts what stands. */
static int assign(Assignment *a, int32_t k, int32_t number, Level *level) {
    const Problem *p = a->m->p, *q = &a->m->q;
    int32_t i = a->m->unsure[k], x = root_of(a, a->zone_of[number]), y = NOBODY, writer = a->c->writer[number];
    Zone zone = a->now[x];
    if (writer != NOBODY) extend(&zone, p->return_at[writer], writer, p->call_at[writer], writer);
    if (p->kind[i] == OBSERVE) {
        extend(&zone, p->return_at[i], i, p->call_at[i], i);
    } else {
        int32_t fixed_follower = a->c->next[number];
        y = root_of(a, a->zone_of[q->produce[i]]);
        if (fixed_follower != NOBODY) name_in_chain(a->m, a->c, fixed_follower);
        if (fixed_follower != NOBODY || a->follower[number] != NOBODY) return 0;
        const Zone *after = &a->now[y];
        if (x == y || after->first_return < zone.last_call) {
            if (writer != NOBODY) name_in_chain(a->m, a->c, writer);
            name_in_chain(a->m, a->c, after->first_returning);
            name_in_chain(a->m, a->c, zone.last_called);
            return 0;
        }
        extend(&zone, after->first_return, after->first_returning, after->last_call, after->last_called);
    }
    if (is_contradicted(a, &zone, x, y)) return 0;
    *level = (Level){level->place, x, y, a->touched_count, a->now[x]};
    a->now[x] = zone;
    a->touched[a->touched_count++] = x;
    if (y != NOBODY) {
        a->into[y] = x;
        a->follower[number] = i;
    }
    a->chosen[k] = number;
    return 1;
}

static void take_back(Assignment *a, int32_t k, const Level *level) {
    a->now[level->zone] = level->before;
    a->touched_count = level->touched_count;
    if (level->joined != NOBODY) {
        a->into[level->joined] = NOBODY;
        a->follower[a->chosen[k]] = NOBODY;
    }
    a->chosen[k] = NOBODY;
}

/* Search an assignment for the reads of one component by backtracking. */
static int assign_component(Assignment *a, const int32_t *reads, int32_t count, Level *levels) {
    Mapping *m = a->m;
    int32_t depth = 0, tries = 0;
    while (m->core_size) m->is_named[m->core[--m->core_size]] = 0;
    a->touched_count = 0;
    levels[0].place = m->begin[reads[0]];
    while (depth < count) {
        int32_t k = reads[depth];
        Level *level = &levels[depth];
        if (level->place == m->begin[k + 1]) {
            if (!depth) break;
            depth--;
            take_back(a, reads[depth], &levels[depth]);
            continue;
        }
        if (tries++ == TRIES_PER_COMPONENT || a->tries_left-- <= 0) return UNKNOWN;
        if (!assign(a, k, m->pairs[level->place++], level)) continue;
        if (++depth < count) levels[depth].place = m->begin[reads[depth]];
    }
    if (depth == count) return LEGAL;
    for (int32_t r = 0; r < count; r++) name_read(m, m->unsure[reads[r]]);
    return ILLEGAL;
}

static void reach_out(int32_t *low, int32_t *high, int32_t call_at, int32_t return_at) {
    int32_t from = call_at < return_at ? call_at : return_at, to = call_at < return_at ? return_at : call_at;
    if (call_at >= 0 && from < *low) *low = from;
    if (return_at != NEVER && to > *high) *high = to;
    if (call_at > *high) *high = call_at;
    if (return_at < *low) *low = return_at;
}

/* Join zones into components: those with a read in common, then those that overlap as far as they may ever reach. */
static void find_components(Assignment *a, const uint8_t *is_idle) {
    const Mapping *m = a->m;
    const Problem *p = m->p;
    Arena *arena = p->arena;
    int32_t *low = TAKE(arena, int32_t, a->count), *high = TAKE(arena, int32_t, a->count), events = 2 * p->size + 2;
    int32_t *at = TAKE(arena, int32_t, events);
    uint8_t *is_open = TAKE_ZEROED(arena, uint8_t, a->count);
    memset(at, 0xff, (size_t)events * sizeof *at);
    for (int32_t k = 0; k < m->unsure_count; k++) {
        if (is_idle[k]) continue;
        int32_t i = m->unsure[k], joined = a->zone_of[m->pairs[m->begin[k]]];
        for (int32_t e = m->begin[k]; e < m->begin[k + 1]; e++) {
            int32_t z = a->zone_of[m->pairs[e]];
            is_open[z] = 1;
            a->parent[component_of(a, z)] = component_of(a, joined);
        }
        if (p->kind[i] != SWAP) continue;
        is_open[a->zone_of[m->q.produce[i]]] = 1;
        a->parent[component_of(a, a->zone_of[m->q.produce[i]])] = component_of(a, joined);
    }
    for (int32_t z = 0; z < a->count; z++) {
        low[z] = events;
        high[z] = -1;
    }
    for (int32_t z = 0; z < a->count; z++) {
        if (!is_open[z]) continue;
        int32_t root = component_of(a, z);
        reach_out(&low[root], &high[root], a->fixed[z].last_call, a->fixed[z].first_return);
    }
    for (int32_t k = 0; k < m->unsure_count; k++) {
        if (is_idle[k]) continue;
        int32_t i = m->unsure[k];
        for (int32_t e = m->begin[k]; e < m->begin[k + 1]; e++) {
            int32_t root = component_of(a, a->zone_of[m->pairs[e]]), writer = a->c->writer[m->pairs[e]];
            reach_out(&low[root], &high[root], p->call_at[i], p->return_at[i]);
            if (writer != NOBODY) reach_out(&low[root], &high[root], p->call_at[writer], p->return_at[writer]);
        }
    }
    for (int32_t z = 0; z < a->count; z++)
        if (is_open[z] && component_of(a, z) == z) at[low[z] + 1] = z;
    int32_t before = NOBODY, reached = -1;
    for (int32_t t = 0; t < events; t++) {
        int32_t z = at[t];
        if (z == NOBODY) continue;
        if (before != NOBODY && low[z] < reached) a->parent[z] = before;
        else before = z;
        if (high[z] > reached) reached = high[z];
    }
}

/* Assign a write to every unsure read: LEGAL when that was possible, ILLEGAL with a core when one component has no
   assignment, UNKNOWN when one took too many tries. */
static int assign_all(Mapping *m, const Clusters *c, const Zone *zones, int32_t count) {
    const Problem *p = m->p;
    Arena *arena = p->arena;
    Assignment a = {.m = m, .c = c, .tries_left = TRIES_PER_COMPONENT + TRIES_PER_PAIR * (int64_t)m->begin[m->unsure_count]};
    uint8_t *is_idle = TAKE_ZEROED(arena, uint8_t, m->unsure_count);
    int32_t *next = TAKE(arena, int32_t, m->unsure_count), *reads = TAKE(arena, int32_t, m->unsure_count);
    Level *levels = TAKE(arena, Level, m->unsure_count);
    a.chosen = TAKE(arena, int32_t, m->unsure_count);
    index_zones(&a, zones, count);
    /* A pending compare-and-set that no sure read saw did not happen here. If a read is assigned to it after all, the
       zones refuse the assignment in the end, for want of what it demanded. */
    for (int32_t k = 0; k < m->unsure_count; k++) {
        int32_t i = m->unsure[k];
        is_idle[k] = p->return_at[i] == NEVER && !happened(&m->q, c, i);
        a.chosen[k] = is_idle[k] ? m->q.values - 1 : NOBODY;
    }
    find_components(&a, is_idle);
    int32_t *first = TAKE(arena, int32_t, a.count);
    memset(first, 0xff, (size_t)a.count * sizeof *first);
    for (int32_t k = m->unsure_count - 1; k >= 0; k--) {
        if (is_idle[k]) continue;
        int32_t root = component_of(&a, a.zone_of[m->pairs[m->begin[k]]]);
        next[k] = first[root];
        first[root] = k;
    }
    int verdict = LEGAL;
    for (int32_t z = 0; z < a.count; z++) {
        int32_t size = 0;
        for (int32_t k = first[z]; k != NOBODY; k = next[k]) reads[size++] = k;
        int found = size ? assign_component(&a, reads, size, levels) : LEGAL;
        if (found == ILLEGAL) return ILLEGAL;
        if (found == UNKNOWN) verdict = UNKNOWN;
    }
    for (int32_t k = 0; k < m->unsure_count; k++) {
        m->q.kind[m->unsure[k]] = p->kind[m->unsure[k]];
        m->q.demand[m->unsure[k]] = a.chosen[k];
    }
    return verdict;
}
