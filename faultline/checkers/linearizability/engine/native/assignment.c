/* Assign to each unsure read one of its possible writes, so that the zones do not contradict each other: see
   ../assignment.py, which explains why components can be searched apart, and which this follows. */

#define TRIES_MIN 4096
#define TRIES_PER_PAIR 8

typedef struct {
    int32_t place;             /* next possible write to try, in `pairs` */
    int32_t joined;            /* the zone that was joined to the one which the read was added to, or NONE */
    Zone before;               /* the latter as it was */
    int32_t reached;           /* the latest last call of all zones that reads were added to so far */
    uint64_t culprits;         /* the levels for which a try failed: bit j is the level j + 1 above this one */
    int is_older;              /* one of them is above those 64 */
} Level;

typedef struct {
    Mapping *m;
    const Clusters *c;
    int32_t count;             /* zones; first those that stand, then those of pending writes that no sure read saw */
    Zone *fixed, *now;         /* without unsure reads; with those assigned so far */
    int32_t *zone_of;          /* by number: its zone, or NONE */
    int32_t *into;             /* by zone: the one that it was joined to, or NONE */
    int32_t *follower;         /* by number: the unsure compare-and-set that was assigned to it, or NONE */
    int32_t *latest, *second;  /* by position: of the zones with a return before it, the two with the latest last calls */
    int32_t *parent;           /* by zone: union-find of components */
    int32_t *reads, depth;     /* of this component; how many of them are assigned */
    int32_t *touched;          /* by level: the zone that its read was added to */
    int32_t blamed[3];         /* the zones for which the latest try failed, or NONE */
    int32_t *before_call, *before_called;       /* by number: the last to be called on what stands before it in its chain */
    int32_t *after_return, *after_returning;    /* by number: the first to return of what stands behind it in its chain */
    int32_t *rank;             /* by number: how many stand before it in its chain */
    uint8_t *is_involved;      /* beside `unsure`: a try for it failed, or failed because of it */
    int32_t *chosen;           /* beside `unsure`: the number assigned, or NONE */
    int64_t tries_left;
} Assignment;

static int32_t root_of(const Assignment *a, int32_t z) {
    while (a->into[z] != NONE) z = a->into[z];
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

/* Say what stands before and behind each number of the chain from `head`. */
static void index_chain(Assignment *a, int32_t head, int32_t z) {
    const Problem *q = &a->m->q;
    const Clusters *c = a->c;
    int32_t v = head, last_call = -1, last_called = NONE, first_return = NEVER, first_returning = NONE;
    for (int32_t rank = 0;; v = q->produce[c->next[v]]) {
        a->zone_of[v] = z;
        a->rank[v] = rank++;
        a->before_call[v] = last_call;
        a->before_called[v] = last_called;
        if (c->last_call[v] > last_call) {
            last_call = c->last_call[v];
            last_called = c->last_called[v];
        }
        if (c->next[v] == NONE) break;
    }
    for (;; v = q->demand[c->writer[v]]) {
        a->after_return[v] = first_return;
        a->after_returning[v] = first_returning;
        if (v == head) break;
        if (c->first_return[v] < first_return) {
            first_return = c->first_return[v];
            first_returning = c->first_returning[v];
        }
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
    a->rank = TAKE(arena, int32_t, q->values);
    a->before_call = TAKE(arena, int32_t, q->values);
    a->before_called = TAKE(arena, int32_t, q->values);
    a->after_return = TAKE(arena, int32_t, q->values);
    a->after_returning = TAKE(arena, int32_t, q->values);
    a->latest = TAKE(arena, int32_t, events);
    a->second = TAKE(arena, int32_t, events);
    memset(a->zone_of, 0xff, (size_t)q->values * sizeof *a->zone_of);
    memset(a->follower, 0xff, (size_t)q->values * sizeof *a->follower);
    memset(a->latest, 0xff, (size_t)events * sizeof *a->latest);
    for (int32_t z = 0; z < count; z++) {
        a->fixed[z] = zones[z];
        a->latest[zones[z].first_return + 1] = z;
        index_chain(a, zones[z].value, z);
    }
    /* latest[t] held the zone whose first return is t - 1; from here on it is the furthest of all up to there. */
    int32_t best = NONE, next_best = NONE;
    for (int32_t t = 0; t < events; t++) {
        int32_t z = a->latest[t];
        if (z != NONE && (best == NONE || zones[z].last_call > zones[best].last_call)) {
            next_best = best;
            best = z;
        } else if (z != NONE && (next_best == NONE || zones[z].last_call > zones[next_best].last_call)) {
            next_best = z;
        }
        a->latest[t] = best;
        a->second[t] = next_best;
    }
    a->count = count;
    for (int32_t k = 0; k < pairs; k++) {
        int32_t number = a->m->pairs[k];
        if (a->zone_of[number] != NONE) continue;
        index_chain(a, number, a->count);
        a->fixed[a->count++] = (Zone){number, NEVER, -1, NONE, NONE};
    }
    memcpy(a->now, a->fixed, (size_t)a->count * sizeof *a->now);
    a->into = TAKE(arena, int32_t, a->count);
    a->parent = TAKE(arena, int32_t, a->count);
    a->touched = TAKE(arena, int32_t, a->m->unsure_count);
    memset(a->into, 0xff, (size_t)a->count * sizeof *a->into);
    for (int32_t z = 0; z < a->count; z++) a->parent[z] = z;
}

static void name_zone(Assignment *a, const Zone *zone) {
    name_in_chain(a->m, a->c, zone->first_returning);
    name_in_chain(a->m, a->c, zone->last_called);
}

/* Whether `zone`, made of the zones x and y, contradicts another one; then the ends of both are named. */
static int is_contradicted(Assignment *a, const Level *levels, const Zone *zone, int32_t x, int32_t y) {
    const Zone *other = NULL;
    if (zone->last_call >= 0) {
        /* Both may be parts of this zone when more than two were joined: then the zones find the contradiction at last. */
        int32_t z = a->latest[zone->last_call];
        if (z != NONE && (root_of(a, z) == x || root_of(a, z) == y)) z = a->second[zone->last_call];
        if (z != NONE && root_of(a, z) != x && root_of(a, z) != y && a->fixed[z].last_call > zone->first_return)
            other = &a->fixed[z];
    }
    for (int32_t l = a->depth - 1; !other && l >= 0 && levels[l].reached > zone->first_return; l--) {
        int32_t z = a->touched[l];
        if (z == x || z == y || a->into[z] != NONE) continue;
        if (a->now[z].first_return >= zone->last_call || zone->first_return >= a->now[z].last_call) continue;
        other = &a->now[z];
        a->blamed[2] = z;
    }
    if (!other) return 0;
    name_zone(a, zone);
    name_zone(a, other);
    return 1;
}

/* Whether read i of `number` contradicts what stands before or behind that in its chain. */
static int is_out_of_chain(Assignment *a, int32_t i, int32_t number) {
    const Problem *p = a->m->p;
    if (p->return_at[i] < a->before_call[number]) {
        name_in_chain(a->m, a->c, a->before_called[number]);
        return 1;
    }
    if (a->after_return[number] < p->call_at[i]) {
        name_in_chain(a->m, a->c, a->after_returning[number]);
        return 1;
    }
    if (a->c->next[a->fixed[a->zone_of[number]].value] == NONE) return 0; /* a chain of one value */
    for (int32_t k = 0; k < a->depth; k++) {
        int32_t other = a->chosen[a->reads[k]], j = a->m->unsure[a->reads[k]];
        if (a->zone_of[other] != a->zone_of[number] || p->kind[j] != OBSERVE) continue;
        if (a->rank[other] < a->rank[number] && p->return_at[i] < p->call_at[j]) return 1;
        if (a->rank[other] > a->rank[number] && p->return_at[j] < p->call_at[i]) return 1;
    }
    return 0;
}

/* Whether the zone y may follow `number`, at the end of `zone`, which is made of the zone x. */
static int may_follow(Assignment *a, int32_t number, const Zone *zone, int32_t x, int32_t y) {
    int32_t fixed_follower = a->c->next[number];
    if (fixed_follower != NONE) name_in_chain(a->m, a->c, fixed_follower);
    if (fixed_follower != NONE || a->follower[number] != NONE) return 0;
    if (x != y && a->now[y].first_return >= zone->last_call) return 1;
    name_in_chain(a->m, a->c, a->c->writer[number]);
    name_in_chain(a->m, a->c, a->now[y].first_returning);
    name_in_chain(a->m, a->c, zone->last_called);
    return 0;
}

/* Assign the write of `number` to the next read; 0 when that contradicts what stands, with the zones to blame. */
static int assign(Assignment *a, int32_t number, Level *levels) {
    const Problem *p = a->m->p;
    Level *level = &levels[a->depth];
    int32_t k = a->reads[a->depth];
    int32_t i = a->m->unsure[k], x = root_of(a, a->zone_of[number]), y = NONE, writer = a->c->writer[number];
    Zone zone = a->now[x];
    if (p->kind[i] == SWAP) y = root_of(a, a->zone_of[a->m->q.produce[i]]);
    a->blamed[0] = x;
    a->blamed[1] = y;
    a->blamed[2] = NONE;
    if (writer != NONE) extend(&zone, p->return_at[writer], writer, p->call_at[writer], writer);
    if (y == NONE) {
        if (is_out_of_chain(a, i, number)) return 0;
        extend(&zone, p->return_at[i], i, p->call_at[i], i);
    } else {
        if (!may_follow(a, number, &zone, x, y)) return 0;
        const Zone *after = &a->now[y];
        extend(&zone, after->first_return, after->first_returning, after->last_call, after->last_called);
    }
    if (is_contradicted(a, levels, &zone, x, y)) return 0;
    level->joined = y;
    level->before = a->now[x];
    level->reached = zone.last_call;
    if (a->depth && levels[a->depth - 1].reached > level->reached) level->reached = levels[a->depth - 1].reached;
    a->now[x] = zone;
    a->touched[a->depth++] = x;
    if (y != NONE) {
        a->into[y] = x;
        a->follower[number] = i;
    }
    a->chosen[k] = number;
    return 1;
}

static void take_back(Assignment *a, const Level *level) {
    int32_t k = a->reads[--a->depth];
    a->now[a->touched[a->depth]] = level->before;
    if (level->joined != NONE) {
        a->into[level->joined] = NONE;
        a->follower[a->chosen[k]] = NONE;
    }
    a->chosen[k] = NONE;
}

/* Note the levels that made the zones to blame what they are: without a change there, the try fails again. */
static void blame(Assignment *a, Level *level) {
    a->is_involved[a->reads[a->depth]] = 1;
    for (int32_t l = 0; l < a->depth; l++) {
        int32_t z = root_of(a, a->touched[l]), above = a->depth - 1 - l;
        if (z != a->blamed[0] && z != a->blamed[1] && z != a->blamed[2]) continue;
        a->is_involved[a->reads[l]] = 1;
        if (above < 64) level->culprits |= (uint64_t)1 << above;
        else level->is_older = 1;
    }
}

/* Go back to the lowest culprit of this level (Prosser 1993), which takes over the others; 0 when there is none. */
static int jump_back(Assignment *a, Level *levels) {
    Level *level = &levels[a->depth];
    uint64_t culprits = level->culprits;
    int32_t target = a->depth - 1, is_older = level->is_older;
    if (!culprits && !is_older) return 0;
    if (culprits) {
        for (; !(culprits & 1); culprits >>= 1) target--;
        culprits >>= 1;
    } else {
        target -= 64;
        culprits = ~(uint64_t)0;
    }
    while (a->depth > target) take_back(a, &levels[a->depth - 1]);
    levels[target].culprits |= culprits;
    levels[target].is_older |= is_older;
    return 1;
}

/* Name read k, and what puts each of its possible writes into its chain: that chain was tried for it. */
static void name_possible(Assignment *a, int32_t k) {
    const Mapping *m = a->m;
    name_in_chain(a->m, a->c, m->unsure[k]);
    for (int32_t e = m->begin[k]; e < m->begin[k + 1]; e++) name_in_chain(a->m, a->c, a->c->writer[m->pairs[e]]);
}

/* Search an assignment for `count` reads of one component, with conflict-directed backjumping. */
static int assign_component(Assignment *a, int32_t count, Level *levels) {
    Mapping *m = a->m;
    while (m->core_size) m->is_named[m->core[--m->core_size]] = 0;
    a->depth = 0;
    levels[0] = (Level){.place = m->begin[a->reads[0]]};
    while (a->depth < count) {
        int32_t k = a->reads[a->depth];
        Level *level = &levels[a->depth];
        if (level->place == m->begin[k + 1]) {
            if (jump_back(a, levels)) continue;
            for (int32_t r = 0; r < count; r++)
                if (a->is_involved[a->reads[r]]) name_possible(a, a->reads[r]);
            return ILLEGAL;
        }
        if (a->tries_left-- <= 0) return UNKNOWN;
        if (!assign(a, m->pairs[level->place++], levels)) blame(a, level);
        else if (a->depth < count) levels[a->depth] = (Level){.place = m->begin[a->reads[a->depth]]};
    }
    return LEGAL;
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
            if (writer != NONE) reach_out(&low[root], &high[root], p->call_at[writer], p->return_at[writer]);
        }
    }
    for (int32_t z = 0; z < a->count; z++)
        if (is_open[z] && component_of(a, z) == z) at[low[z] + 1] = z;
    int32_t before = NONE, reached = -1;
    for (int32_t t = 0; t < events; t++) {
        int32_t z = at[t];
        if (z == NONE) continue;
        if (before != NONE && low[z] < reached) a->parent[z] = before;
        else before = z;
        if (high[z] > reached) reached = high[z];
    }
}

/* Assign a write to every unsure read: LEGAL when that was possible, ILLEGAL with a core when one component has no
   assignment, UNKNOWN when one took too many tries. */
static int assign_all(Mapping *m, const Clusters *c, const Zone *zones, int32_t count) {
    const Problem *p = m->p;
    Arena *arena = p->arena;
    Assignment a = {.m = m, .c = c, .tries_left = TRIES_MIN + TRIES_PER_PAIR * (int64_t)m->begin[m->unsure_count]};
    uint8_t *is_idle = TAKE_ZEROED(arena, uint8_t, m->unsure_count);
    int32_t *next = TAKE(arena, int32_t, m->unsure_count);
    Level *levels = TAKE(arena, Level, m->unsure_count);
    a.chosen = TAKE(arena, int32_t, m->unsure_count);
    a.reads = TAKE(arena, int32_t, m->unsure_count);
    a.is_involved = TAKE_ZEROED(arena, uint8_t, m->unsure_count);
    index_zones(&a, zones, count);
    /* A pending compare-and-set that no sure read saw did not happen here. If a read is assigned to it after all, the
       zones refuse the assignment in the end, for want of what it demanded. */
    for (int32_t k = 0; k < m->unsure_count; k++) {
        int32_t i = m->unsure[k];
        is_idle[k] = p->return_at[i] == NEVER && !happened(&m->q, c, i);
        a.chosen[k] = is_idle[k] ? m->q.values - 1 : NONE;
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
        for (int32_t k = first[z]; k != NONE; k = next[k]) a.reads[size++] = k;
        int found = size ? assign_component(&a, size, levels) : LEGAL;
        if (found == ILLEGAL) return ILLEGAL;
        if (found == UNKNOWN) verdict = UNKNOWN;
    }
    for (int32_t k = 0; k < m->unsure_count; k++) {
        m->q.kind[m->unsure[k]] = p->kind[m->unsure[k]];
        m->q.demand[m->unsure[k]] = a.chosen[k];
    }
    return verdict;
}
