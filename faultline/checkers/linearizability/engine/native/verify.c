/* The verifier of refutations: the fast twin of ../../verify.py, where the rules R1 to R6 are stated and proved.

   It shares the order of events with the rest of the kernel (see problem.h) and nothing else: slots, groups and steps
   are its own, so that a mistake in the frontier that made the set cannot be in here too. */

enum { HOLDS, NOT_WELL_FORMED, NOT_CLOSED, COMES_TO_THE_END };

typedef struct {
    int64_t count;
    const int32_t *rank, *state, *ahead_begin, *ahead, *used_begin, *used;
} Members;

typedef struct {
    int32_t group, count;
} Taken;

typedef struct {
    const Problem *p;
    const Members *m;
    int32_t words;
    int32_t *place;            /* by completed operation: its bit while it is open */
    int32_t *rank_of;          /* by completed operation */
    int32_t *opening, *opened; /* completed operations in order of call; by rank: how many of them were called */
    int32_t *last_look;        /* by value */
    /* pending operations, in groups of equal ones, each in order of call */
    int32_t groups, *group_of, *begin, *in_group, *by_first_call;
    Taken *taken; /* of all members, one behind the other, by way of used_begin: groups that were not used have no entry */
    int32_t *taken_length;
    int32_t *count; /* by group: used in the configuration at hand */
    uint64_t *masks, *mask;
    int32_t *next_member, *table;
    size_t table_size;
    int32_t *window, open;
    int32_t *wanted, stamp; /* by value: equal to `stamp` when it is in demand */
    int32_t *available;     /* pending operations to use next */
} Verifier;

static void order_windows(Verifier *v) {
    const Problem *p = v->p;
    int32_t *unused = TAKE(p->arena, int32_t, p->completed + 1), free_count = 0, places = 0, c = 0;
    v->place = TAKE(p->arena, int32_t, p->size + 1);
    v->rank_of = TAKE(p->arena, int32_t, p->size + 1);
    v->opening = TAKE(p->arena, int32_t, p->completed + 1);
    v->opened = TAKE(p->arena, int32_t, p->completed + 1);
    for (int32_t k = 0; k < p->size; k++) {
        v->rank_of[p->by_call[k]] = NONE;
        if (p->return_at[p->by_call[k]] != NEVER) v->opening[c++] = p->by_call[k];
    }
    c = 0;
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t next = p->by_return[r];
        v->rank_of[next] = r;
        for (; c < p->completed && p->call_at[v->opening[c]] < p->return_at[next]; c++)
            v->place[v->opening[c]] = free_count ? unused[--free_count] : places++;
        v->opened[r] = c;
        unused[free_count++] = v->place[next];
    }
    v->words = places / 64 + 1;
    v->window = TAKE(p->arena, int32_t, places + 1);
    v->mask = TAKE(p->arena, uint64_t, v->words);
}

/* By value, the last rank at which a completed operation looks for it; for ever when a pending one may. */
static void find_last_looks(Verifier *v) {
    const Problem *p = v->p;
    v->last_look = TAKE(p->arena, int32_t, p->values);
    for (int32_t value = 0; value < p->values; value++) v->last_look[value] = -1;
    for (int32_t i = 0; i < p->size; i++) {
        if (p->kind[i] == WRITE || p->kind[i] == APPEND) continue;
        int32_t rank = p->return_at[i] != NEVER ? v->rank_of[i] : p->kind[i] == SWAP ? NEVER : -1;
        if (rank > v->last_look[p->demand[i]]) v->last_look[p->demand[i]] = rank;
    }
    /* What an append may make of a text is looked for through that text; longer texts have higher numbers. */
    for (int32_t k = p->edges - 1; k >= 0; k--) {
        int32_t e = p->edges_by_length[k];
        if (v->last_look[p->edge_to[e]] > v->last_look[p->edge_from[e]])
            v->last_look[p->edge_from[e]] = v->last_look[p->edge_to[e]];
    }
}

static int can_be_used(const Problem *p, int32_t i) { return p->return_at[i] == NEVER && p->kind[i] >= WRITE; }

static void find_groups(Verifier *v) {
    const Problem *p = v->p;
    int64_t *key = TAKE(p->arena, int64_t, p->size + 1);
    int32_t *items = TAKE(p->arena, int32_t, p->size + 1), count = 0;
    v->group_of = TAKE(p->arena, int32_t, p->size + 1);
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k], produce = p->produce[i];
        v->group_of[i] = NONE;
        if (!can_be_used(p, i)) continue;
        if (p->kind[i] != APPEND && v->last_look[produce] < 0) produce = DEAD;
        int64_t demand = p->kind[i] == WRITE ? -1 : p->demand[i];
        key[i] = (int64_t)p->kind[i] << 60 | (demand + 1) << 30 | (produce + 1);
        items[count++] = i;
    }
    sort_by(key, items, count, p->arena);
    v->in_group = items;
    v->begin = TAKE(p->arena, int32_t, count + 2);
    v->by_first_call = TAKE(p->arena, int32_t, count + 1);
    int64_t *first_call = TAKE(p->arena, int64_t, count + 1);
    for (int32_t k = 0; k < count; k++) {
        if (!k || key[items[k]] != key[items[k - 1]]) {
            first_call[v->groups] = p->call_at[items[k]];
            v->by_first_call[v->groups] = v->groups;
            v->begin[v->groups++] = k;
        }
        v->group_of[items[k]] = v->groups - 1;
    }
    v->begin[v->groups] = count;
    v->count = TAKE_ZEROED(p->arena, int32_t, v->groups + 1);
    v->available = TAKE(p->arena, int32_t, v->groups + 1);
    sort_by(first_call, v->by_first_call, v->groups, p->arena);
}

static int is_dead(const Verifier *v, int32_t state, int32_t rank) { return state == DEAD || v->last_look[state] < rank; }

static int32_t bit_of(const Verifier *v, const uint64_t *mask, int32_t i) {
    return mask[v->place[i] >> 6] >> (v->place[i] & 63) & 1;
}

static void mark_slot(const Verifier *v, uint64_t *mask, int32_t i) {
    mask[v->place[i] >> 6] |= (uint64_t)1 << (v->place[i] & 63);
}

static size_t hash_of(const Verifier *v, int32_t rank, int32_t state, const uint64_t *mask) {
    uint64_t h = (uint64_t)(uint32_t)rank * 0x9E3779B97F4A7C15u + (uint64_t)(uint32_t)state;
    for (int32_t w = 0; w < v->words; w++) h = (h ^ mask[w] ^ h >> 29) * 0xBF58476D1CE4E5B9u;
    return (size_t)(h ^ h >> 32) & (v->table_size - 1);
}

static uint64_t *mask_of(const Verifier *v, int64_t k) { return v->masks + (size_t)k * (size_t)v->words; }

/* Read member `k`: its mask, what it used by group, and its place in the table; 0 when it is no configuration. */
static int read_member(Verifier *v, int32_t k) {
    const Problem *p = v->p;
    const Members *m = v->m;
    int32_t rank = m->rank[k], length = 0;
    if (rank < 0 || rank >= p->completed || (k && rank < m->rank[k - 1])) return 0;
    if (m->state[k] < DEAD || m->state[k] >= p->values || (m->state[k] != DEAD && is_dead(v, m->state[k], rank))) return 0;
    if (m->ahead_begin[k] > m->ahead_begin[k + 1] || m->used_begin[k] > m->used_begin[k + 1]) return 0;
    int32_t now = p->return_at[p->by_return[rank]];
    uint64_t *mask = mask_of(v, k);
    for (int32_t a = m->ahead_begin[k]; a < m->ahead_begin[k + 1]; a++) {
        int32_t i = m->ahead[a];
        if (i < 0 || i >= p->size || p->return_at[i] == NEVER) return 0;
        if (p->call_at[i] > now || p->return_at[i] <= now || bit_of(v, mask, i)) return 0;
        mark_slot(v, mask, i);
    }
    Taken *taken = v->taken + m->used_begin[k];
    for (int32_t u = m->used_begin[k]; u < m->used_begin[k + 1]; u++) {
        int32_t i = m->used[u];
        if (i < 0 || i >= p->size || v->group_of[i] == NONE) return 0;
        for (int32_t before = m->used_begin[k]; before < u; before++)
            if (m->used[before] == i) return 0;
        int32_t t = 0;
        while (t < length && taken[t].group != v->group_of[i]) t++;
        if (t == length) taken[length++] = (Taken){v->group_of[i], 0};
        taken[t].count++;
    }
    v->taken_length[k] = length;
    size_t place = hash_of(v, rank, m->state[k], mask);
    while (v->table[place] >= 0) {
        int32_t head = v->table[place];
        if (m->rank[head] == rank && m->state[head] == m->state[k] &&
            !memcmp(mask_of(v, head), mask, (size_t)v->words * sizeof *mask)) break;
        place = (place + 1) & (v->table_size - 1);
    }
    v->next_member[k] = v->table[place];
    v->table[place] = k;
    return 1;
}

static int read_members(Verifier *v) {
    const Problem *p = v->p;
    const Members *m = v->m;
    size_t count = (size_t)m->count;
    for (v->table_size = 64; v->table_size < 2 * count; v->table_size *= 2) {}
    v->masks = TAKE_ZEROED(p->arena, uint64_t, (count + 1) * (size_t)v->words);
    v->taken = TAKE(p->arena, Taken, m->used_begin[count] + 1);
    v->taken_length = TAKE(p->arena, int32_t, count + 1);
    v->next_member = TAKE(p->arena, int32_t, count + 1);
    v->table = TAKE(p->arena, int32_t, v->table_size);
    memset(v->table, 0xff, v->table_size * sizeof *v->table);
    for (int32_t k = 0; k < m->count; k++)
        if (!read_member(v, k)) return 0;
    return 1;
}

/* R3: whether a member dominates the configuration in the mask and the counts at hand. */
static int is_dominated(const Verifier *v, int32_t rank, int32_t state) {
    const Members *m = v->m;
    size_t place = hash_of(v, rank, state, v->mask);
    for (; v->table[place] >= 0; place = (place + 1) & (v->table_size - 1)) {
        int32_t head = v->table[place];
        if (m->rank[head] != rank || m->state[head] != state ||
            memcmp(mask_of(v, head), v->mask, (size_t)v->words * sizeof *v->mask)) continue;
        for (int32_t k = head; k >= 0; k = v->next_member[k]) {
            int32_t within = 1;
            for (int32_t t = 0; t < v->taken_length[k] && within; t++) {
                Taken taken = v->taken[m->used_begin[k] + t];
                within = taken.count <= v->count[taken.group];
            }
            if (within) return 1;
        }
        return 0;
    }
    return 0;
}

static int observes(const Problem *p, int32_t i, int32_t state) {
    return (p->kind[i] == OBSERVE && p->demand[i] == state) || (p->kind[i] == AVOID && p->demand[i] != state);
}

/* Bring the configuration in the mask into normal form (R1, R5, returns that were taken ahead) and look it up.
   `from` is the number of completed operations, in order of call, before those that R1 has not seen yet. */
static int lands(Verifier *v, int32_t rank, int32_t state, int32_t from) {
    const Problem *p = v->p;
    for (;;) {
        if (is_dead(v, state, rank)) state = DEAD;
        for (; from < v->opened[rank]; from++)
            if (observes(p, v->opening[from], state)) mark_slot(v, v->mask, v->opening[from]);
        int32_t next = p->by_return[rank];
        if (!bit_of(v, v->mask, next)) return is_dominated(v, rank, state) ? HOLDS : NOT_CLOSED;
        v->mask[v->place[next] >> 6] &= ~((uint64_t)1 << (v->place[next] & 63));
        if (++rank == p->completed) return COMES_TO_THE_END;
    }
}

/* Take a step from member `k` to `state`; what is open and observes it comes along (R1). */
static int step_from(Verifier *v, int32_t k, int32_t i, int32_t state) {
    const Problem *p = v->p;
    memcpy(v->mask, mask_of(v, k), (size_t)v->words * sizeof *v->mask);
    if (p->return_at[i] != NEVER) mark_slot(v, v->mask, i);
    for (int32_t o = 0; o < v->open; o++)
        if (observes(p, v->window[o], state)) mark_slot(v, v->mask, v->window[o]);
    return lands(v, v->m->rank[k], state, v->opened[v->m->rank[k]]);
}

static int32_t after(const Verifier *v, int32_t i, int32_t state, int32_t rank) {
    const Problem *p = v->p;
    int32_t made = p->kind[i] == APPEND ? appended(p, i, state) : p->produce[i];
    return is_dead(v, made, rank) ? DEAD : made;
}

/* R2: whether an operation earlier in the window, not linearized, is equal to the one at `o`. */
static int has_equal_before(const Verifier *v, int32_t k, int32_t o) {
    const Problem *p = v->p;
    int32_t i = v->window[o], rank = v->m->rank[k];
    for (int32_t b = 0; b < o; b++) {
        int32_t other = v->window[b];
        if (p->kind[other] != p->kind[i] || bit_of(v, mask_of(v, k), other)) continue;
        if (p->kind[i] == APPEND) {
            if (p->produce[other] == p->produce[i] && p->demand[other] == p->demand[i]) return 1;
        } else if (p->kind[i] == WRITE || p->demand[other] == p->demand[i]) {
            int32_t mine = is_dead(v, p->produce[i], rank) ? DEAD : p->produce[i];
            if ((is_dead(v, p->produce[other], rank) ? DEAD : p->produce[other]) == mine) return 1;
        }
    }
    return 0;
}

/* The member of group `g` to use next, if it was called by now; else NONE. */
static int32_t next_of(const Verifier *v, int32_t g, int32_t now) {
    int32_t k = v->begin[g] + v->count[g];
    return k < v->begin[g + 1] && v->p->call_at[v->in_group[k]] < now ? v->in_group[k] : NONE;
}

/* R6: whether an open or a pending operation puts what the one that returns next looks for in vain. */
static int is_supplied_now(const Verifier *v, int32_t k, int32_t now) {
    const Problem *p = v->p;
    int32_t next = p->by_return[v->m->rank[k]];
    if (p->appends || p->kind[next] == WRITE || p->kind[next] == AVOID || p->demand[next] == v->m->state[k]) return 1;
    for (int32_t o = 0; o < v->open; o++) {
        int32_t i = v->window[o];
        if (i != next && p->kind[i] >= WRITE && p->produce[i] == p->demand[next] && !bit_of(v, mask_of(v, k), i)) return 1;
    }
    for (int32_t b = 0; b < v->groups && p->call_at[v->in_group[v->begin[v->by_first_call[b]]]] < now; b++) {
        int32_t i = next_of(v, v->by_first_call[b], now);
        if (i != NONE && p->produce[i] == p->demand[next]) return 1;
    }
    return 0;
}

/* R4: mark what available compare-and-sets demand whose own value is in demand, until that adds nothing. */
static void mark_wanted(Verifier *v, int32_t available) {
    const Problem *p = v->p;
    for (int changed = 1; changed;) {
        changed = 0;
        for (int32_t a = 0; a < available; a++) {
            int32_t i = v->available[a];
            if (p->kind[i] != SWAP || v->wanted[p->produce[i]] != v->stamp || v->wanted[p->demand[i]] == v->stamp) continue;
            v->wanted[p->demand[i]] = v->stamp;
            changed = 1;
        }
    }
}

static int check_pending(Verifier *v, int32_t k, int32_t now, int has_avoid) {
    const Problem *p = v->p;
    int32_t rank = v->m->rank[k], state = v->m->state[k], available = 0;
    for (int32_t b = 0; b < v->groups && p->call_at[v->in_group[v->begin[v->by_first_call[b]]]] < now; b++) {
        int32_t i = next_of(v, v->by_first_call[b], now);
        if (i != NONE) v->available[available++] = i;
    }
    mark_wanted(v, available);
    for (int32_t a = 0; a < available; a++) {
        int32_t i = v->available[a], made = after(v, i, state, rank), g = v->group_of[i];
        if (made == state || (p->kind[i] == SWAP && p->demand[i] != state)) continue;
        if (!has_avoid && (made == DEAD || (!p->appends && v->wanted[made] != v->stamp))) continue;
        v->count[g]++;
        int fault = step_from(v, k, i, made);
        v->count[g]--;
        if (fault != HOLDS) return fault;
    }
    return HOLDS;
}

/* Whether member `k` is in normal form and all its steps lead to members, or to what members dominate. */
static int check_member(Verifier *v, int32_t k) {
    const Problem *p = v->p;
    int32_t rank = v->m->rank[k], state = v->m->state[k], now = p->return_at[p->by_return[rank]];
    int has_avoid = 0;
    const uint64_t *mask = mask_of(v, k);
    v->stamp++;
    for (int32_t o = 0; o < v->open; o++) {
        int32_t i = v->window[o];
        if (bit_of(v, mask, i)) continue;
        if (observes(p, i, state)) return NOT_WELL_FORMED;
        has_avoid |= p->kind[i] == AVOID;
        if (p->kind[i] == OBSERVE || p->kind[i] == SWAP) v->wanted[p->demand[i]] = v->stamp;
    }
    for (int32_t t = 0; t < v->taken_length[k]; t++) {
        Taken taken = v->taken[v->m->used_begin[k] + t];
        v->count[taken.group] = taken.count;
    }
    int fault = HOLDS;
    if (is_supplied_now(v, k, now)) {
        for (int32_t o = 0; o < v->open && fault == HOLDS; o++) {
            int32_t i = v->window[o], kind = p->kind[i];
            if (kind < WRITE || (kind == SWAP && p->demand[i] != state) || bit_of(v, mask, i)) continue;
            if (!has_equal_before(v, k, o)) fault = step_from(v, k, i, after(v, i, state, rank));
        }
        if (fault == HOLDS) fault = check_pending(v, k, now, has_avoid);
    }
    for (int32_t t = 0; t < v->taken_length[k]; t++) v->count[v->taken[v->m->used_begin[k] + t].group] = 0;
    return fault;
}

/* The completed operations open at a rank, in order of return, from those at the rank before. */
static void move_window(Verifier *v, int32_t rank, int32_t *called) {
    int32_t kept = 0;
    for (int32_t o = 0; o < v->open; o++)
        if (v->rank_of[v->window[o]] >= rank) v->window[kept++] = v->window[o];
    v->open = kept;
    for (; *called < v->opened[rank]; ++*called) {
        int32_t i = v->opening[*called], o;
        if (v->rank_of[i] < rank) continue;
        for (o = v->open++; o > 0 && v->rank_of[v->window[o - 1]] > v->rank_of[i]; o--) v->window[o] = v->window[o - 1];
        v->window[o] = i;
    }
}

/* Whether the members are an inductive set: they hold the beginning, are closed, and none comes to the end. */
static int check_members(Verifier *v, const Problem *p, const Members *m, int64_t *at) {
    memset(v, 0, sizeof *v);
    v->p = p;
    v->m = m;
    *at = 0;
    if (!p->completed || !m->count) return NOT_CLOSED;
    order_windows(v);
    find_last_looks(v);
    find_groups(v);
    v->wanted = TAKE_ZEROED(p->arena, int32_t, p->values);
    if (!read_members(v)) return NOT_WELL_FORMED;
    memset(v->mask, 0, (size_t)v->words * sizeof *v->mask);
    int fault = lands(v, 0, INITIAL, 0);
    for (int32_t k = 0, called = 0; k < m->count && fault == HOLDS; k++) {
        *at = k;
        if (!k || m->rank[k] != m->rank[k - 1]) move_window(v, m->rank[k], &called);
        fault = check_member(v, k);
    }
    return fault;
}
