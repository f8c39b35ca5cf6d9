/* The forward frontier: return by return, every configuration in which a history can be.

   It runs on a history that was refuted, and gives the inductive set that proves the refutation (see ../../verify.py,
   which names and proves the rules R1 to R6; the slot search has the same names for them). It looks back at nothing and
   ahead at nothing but R5, which only makes configurations equal: so the frontier is empty exactly at the first return
   that makes the history illegal. The working memory holds one rank and is bounded by concurrency. */

typedef struct {
    int32_t state, used, next; /* `next` configuration of this rank with the same state and mask, or NONE */
    int32_t is_dominated;
} Configuration;

typedef struct {
    Pool rank, state, ahead_begin, ahead, used_begin, used;
    int32_t furthest;
    int64_t looks; /* configurations that were made, and comparisons of what two of them used: the work done */
} Refutation;

typedef struct {
    Search *s;         /* slots, groups and the tree of pending operations; its mask and state are scratch */
    Refutation *found;
    int32_t *last_look; /* by value: the last rank that looks for it */
    int32_t *append_stamp;
    Pool configurations, masks, arrivals, arrived_masks;
    int32_t *table;
    size_t table_size;
    int64_t looks_max;
    double deadline_s;
    int is_given_up;
} Frontier;

#define CONFIGURATION(f, i) (((Configuration *)(f)->configurations.items) + (i))

static uint64_t *mask_at(const Frontier *f, size_t i) { return (uint64_t *)f->masks.items + i * (size_t)f->s->words; }

static void pool_add_int(Search *s, Pool *pool, int32_t value) { *(int32_t *)pool_add(s, pool, 1) = value; }

static void count_looks(Frontier *f) {
    const Problem *p = f->s->p;
    if (p->appends) {
        f->last_look = f->s->last_get;
        return;
    }
    f->last_look = TAKE(p->arena, int32_t, p->values);
    memset(f->last_look, 0xff, (size_t)p->values * sizeof *f->last_look);
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t i = p->by_return[r];
        if (p->kind[i] != WRITE) f->last_look[p->demand[i]] = r;
    }
    for (int32_t i = 0; i < p->size; i++)
        if (is_pending(p, i) && p->kind[i] == SWAP) f->last_look[p->demand[i]] = NEVER;
}

/* R5: what a state counts as at this rank. */
static int32_t seen_as(const Frontier *f, int32_t state) {
    return state != DEAD && f->last_look[state] >= f->s->rank ? state : DEAD;
}

/* R1, in the mask and the state of the search. */
static void take_observers(Search *s) {
    const Problem *p = s->p;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t i = s->in_slot[slot];
        if (i == NONE) continue;
        if ((p->kind[i] == OBSERVE && p->demand[i] == s->state) || (p->kind[i] == AVOID && p->demand[i] != s->state))
            s->ahead[slot >> 6] |= (uint64_t)1 << (slot & 63);
    }
}

static size_t place_in(const Frontier *f, int32_t state, const uint64_t *mask) {
    uint64_t h = mix((uint64_t)(uint32_t)state + 1);
    for (int32_t w = 0; w < f->s->words; w++) h = mix(h ^ mask[w]);
    return (size_t)h & (f->table_size - 1);
}

/* The place of a state and a mask in the table: that of the head of their list, or an empty one. */
static size_t find_place(const Frontier *f, int32_t state, const uint64_t *mask) {
    size_t k = place_in(f, state, mask);
    for (; f->table[k] >= 0; k = (k + 1) & (f->table_size - 1))
        if (CONFIGURATION(f, f->table[k])->state == state && !memcmp(mask_at(f, (size_t)f->table[k]), mask, f->masks.size)) break;
    return k;
}

static void clear_table(Frontier *f) { memset(f->table, 0xff, f->table_size * sizeof *f->table); }

static void grow_frontier_table(Frontier *f) {
    free(f->table);
    f->table_size = f->table_size ? 2 * f->table_size : 64;
    f->table = malloc(f->table_size * sizeof *f->table);
    if (!f->table) longjmp(f->s->p->arena->out_of_memory, 1);
    clear_table(f);
    /* Later ones lead the list of their equals, so going through all in order puts the heads back. */
    for (size_t i = 0; i < f->configurations.count; i++)
        f->table[find_place(f, CONFIGURATION(f, i)->state, mask_at(f, i))] = (int32_t)i;
}

/* Add the configuration in which the search's scratch stands, unless another one dominates it (R3). */
static void add_configuration(Frontier *f, int32_t used) {
    Search *s = f->s;
    f->found->looks++;
    if (2 * (f->configurations.count + 1) > f->table_size) grow_frontier_table(f);
    size_t place = find_place(f, s->state, s->ahead);
    int32_t head = f->table[place];
    for (int32_t e = head; e >= 0; e = CONFIGURATION(f, e)->next, f->found->looks++)
        if (is_within(s, CONFIGURATION(f, e)->used, used)) return;
    for (int32_t e = head; e >= 0; e = CONFIGURATION(f, e)->next, f->found->looks++)
        if (is_within(s, used, CONFIGURATION(f, e)->used)) CONFIGURATION(f, e)->is_dominated = 1;
    Configuration added = {s->state, used, head, 0};
    f->table[place] = (int32_t)f->configurations.count;
    *(Configuration *)pool_add(s, &f->configurations, 1) = added;
    memcpy(pool_add(s, &f->masks, 1), s->ahead, f->masks.size);
}

/* Linearize operation `i` in configuration `k`, which leads to `state`. */
static void step_to(Frontier *f, size_t k, int32_t i, int32_t state) {
    Search *s = f->s;
    int32_t used = CONFIGURATION(f, k)->used;
    memcpy(s->ahead, mask_at(f, k), f->masks.size);
    if (is_pending(s->p, i)) {
        Used node = {used, s->group_of[i], NODE(s, used)->depth + 1};
        used = (int32_t)s->nodes.count;
        *(Used *)pool_add(s, &s->nodes, 1) = node;
    } else {
        int32_t slot = s->slot[i];
        s->ahead[slot >> 6] |= (uint64_t)1 << (slot & 63);
    }
    s->state = state;
    take_observers(s);
    add_configuration(f, used);
}

static void count_taken(Search *s, int32_t used, int32_t by) {
    for (int32_t k = used; NODE(s, k)->parent >= 0; k = NODE(s, k)->parent) s->taken[NODE(s, k)->group] += by;
}

/* R2: whether an operation equal to completed `i`, which leads to `after`, was tried from this configuration. */
static int was_tried(Search *s, int32_t i, int32_t after) {
    int kind = s->p->kind[i];
    int32_t *stamp;
    if (kind == APPEND) return 0;
    if (after == DEAD) stamp = kind == SWAP ? &s->dead_swap_stamp : &s->dead_write_stamp;
    else stamp = kind == SWAP ? &s->swap_stamp[after] : &s->write_stamp[after];
    int was = *stamp == s->stamp;
    *stamp = s->stamp;
    return was;
}

static int32_t leads_to(const Frontier *f, int32_t i, int32_t state) {
    const Problem *p = f->s->p;
    return seen_as(f, p->kind[i] == APPEND ? appended(p, i, state) : p->produce[i]);
}

static void step_by_group(Frontier *f, size_t k, int32_t g) {
    Search *s = f->s;
    int32_t state = CONFIGURATION(f, k)->state;
    if (s->group_stamp[g] == s->stamp || !is_available(s, g)) return;
    if (group_kind(s, g) == SWAP && group_demand(s, g) != state) return;
    s->group_stamp[g] = s->stamp;
    int32_t i = s->member[s->group_begin[g] + s->taken[g]], after = leads_to(f, i, state);
    if (after != state && !(s->p->appends && after == DEAD)) step_to(f, k, i, after);
}

/* R4: backwards from the values in demand, of which there are `wanted` so far, through compare-and-sets. */
static void step_by_pending(Frontier *f, size_t k, int has_avoid, int32_t wanted) {
    Search *s = f->s;
    int32_t used = CONFIGURATION(f, k)->used;
    count_taken(s, used, 1);
    if (has_avoid || s->p->appends) {
        for (int32_t g = 0; g < s->groups; g++) step_by_group(f, k, g);
    } else {
        while (wanted) {
            int32_t value = s->wanted[--wanted];
            for (int32_t g = s->by_produce[value]; g != NONE; g = s->next_by_produce[g]) {
                step_by_group(f, k, g);
                if (group_kind(s, g) == SWAP && is_available(s, g)) want(s, group_demand(s, g), &wanted);
            }
        }
    }
    count_taken(s, used, -1);
}

/* R6: whether something open or pending puts what the one that returns next demands. */
static int is_supplied(Search *s, int32_t next, int32_t used, const uint64_t *mask) {
    const Problem *p = s->p;
    int32_t demand = p->demand[next], supplied = 0;
    for (int32_t slot = 0; slot < s->slots && !supplied; slot++) {
        int32_t i = s->in_slot[slot];
        if (i == NONE || i == next || (mask[slot >> 6] >> (slot & 63) & 1)) continue;
        supplied = (p->kind[i] == WRITE || p->kind[i] == SWAP) && p->produce[i] == demand;
    }
    if (supplied) return 1;
    count_taken(s, used, 1);
    for (int32_t g = s->by_produce[demand]; g != NONE && !supplied; g = s->next_by_produce[g])
        supplied = is_available(s, g);
    count_taken(s, used, -1);
    return supplied;
}

static void expand(Frontier *f, size_t k) {
    Search *s = f->s;
    const Problem *p = s->p;
    int32_t state = CONFIGURATION(f, k)->state, next = p->by_return[s->rank];
    int must_find = !p->appends && (p->kind[next] == OBSERVE || p->kind[next] == SWAP) && p->demand[next] != state;
    if (must_find && !is_supplied(s, next, CONFIGURATION(f, k)->used, mask_at(f, k))) return;
    int has_avoid = 0;
    int32_t begin = (int32_t)s->candidates.count, wanted = 0;
    s->stamp++;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t i = s->in_slot[slot];
        if (i == NONE || (mask_at(f, k)[slot >> 6] >> (slot & 63) & 1)) continue;
        int kind = p->kind[i];
        if (kind == WRITE || kind == APPEND || (kind == SWAP && p->demand[i] == state)) pool_add_int(s, &s->candidates, i);
        else if (kind == AVOID) has_avoid = 1;
        if (kind == OBSERVE || kind == SWAP) want(s, p->demand[i], &wanted);
    }
    int32_t count = (int32_t)s->candidates.count - begin;
    sort_candidates(p, &CANDIDATE(s, begin), count, DEAD);
    for (int32_t c = 0; c < count; c++) {
        int32_t i = CANDIDATE(s, begin + c), after = leads_to(f, i, state), repeated = 0;
        for (int32_t d = 0; d < c && p->kind[i] == APPEND && !repeated; d++) {
            int32_t other = CANDIDATE(s, begin + d);
            repeated = p->kind[other] == APPEND && p->produce[other] == p->produce[i] && p->demand[other] == p->demand[i];
        }
        if (!repeated && !was_tried(s, i, after)) step_to(f, k, i, after);
    }
    s->candidates.count = (size_t)begin;
    step_by_pending(f, k, has_avoid, wanted);
}

static void tell_configuration(Frontier *f, size_t k) {
    Search *s = f->s;
    Refutation *found = f->found;
    const uint64_t *mask = mask_at(f, k);
    pool_add_int(s, &found->rank, s->rank);
    pool_add_int(s, &found->state, CONFIGURATION(f, k)->state);
    for (int32_t slot = 0; slot < s->slots; slot++)
        if (mask[slot >> 6] >> (slot & 63) & 1) pool_add_int(s, &found->ahead, s->in_slot[slot]);
    int32_t used = CONFIGURATION(f, k)->used;
    for (int32_t n = used; NODE(s, n)->parent >= 0; n = NODE(s, n)->parent) {
        int32_t g = NODE(s, n)->group;
        pool_add_int(s, &found->used, s->member[s->group_begin[g] + s->taken[g]++]);
    }
    count_taken(s, used, -1);
    pool_add_int(s, &found->ahead_begin, (int32_t)found->ahead.count);
    pool_add_int(s, &found->used_begin, (int32_t)found->used.count);
}

/* All configurations of this rank, from those that arrive; answers whether any arrives at the next one. */
static int pass_rank(Frontier *f) {
    Search *s = f->s;
    const Problem *p = s->p;
    int32_t next = p->by_return[s->rank], slot = s->slot[next];
    f->configurations.count = f->masks.count = 0;
    clear_table(f);
    open_window(s);
    for (size_t a = 0; a < f->arrivals.count; a++) {
        const Configuration *arrived = (Configuration *)f->arrivals.items + a;
        int32_t used = arrived->used;
        memcpy(s->ahead, (uint64_t *)f->arrived_masks.items + a * (size_t)s->words, f->masks.size);
        s->state = seen_as(f, arrived->state);
        take_observers(s);
        add_configuration(f, used);
    }
    f->arrivals.count = f->arrived_masks.count = 0;
    for (size_t k = 0; k < f->configurations.count; k++) {
        f->is_given_up = f->found->looks > f->looks_max || (f->deadline_s > 0 && k % 1024 == 0 && now_s() >= f->deadline_s);
        if (f->is_given_up) return 0;
        if (CONFIGURATION(f, k)->is_dominated) continue;
        if (!(mask_at(f, k)[slot >> 6] >> (slot & 63) & 1)) {
            expand(f, k);
            continue;
        }
        *(Configuration *)pool_add(s, &f->arrivals, 1) = *CONFIGURATION(f, k);
        uint64_t *mask = pool_add(s, &f->arrived_masks, 1);
        memcpy(mask, mask_at(f, k), f->masks.size);
        mask[slot >> 6] &= ~((uint64_t)1 << (slot & 63));
    }
    for (size_t k = 0; k < f->configurations.count; k++)
        if (!CONFIGURATION(f, k)->is_dominated && !(mask_at(f, k)[slot >> 6] >> (slot & 63) & 1)) tell_configuration(f, k);
    s->in_slot[slot] = NONE;
    return f->arrivals.count > 0;
}

static void close_refutation(Refutation *found) {
    Pool *pools[] = {&found->rank, &found->state, &found->ahead_begin, &found->ahead, &found->used_begin, &found->used};
    for (int k = 0; k < 6; k++) pool_free(pools[k]);
}

static void close_frontier(Frontier *f) {
    pool_free(&f->configurations);
    pool_free(&f->masks);
    pool_free(&f->arrivals);
    pool_free(&f->arrived_masks);
    free(f->table);
    f->table = NULL;
}

/* Advance the frontier of `p` until it is empty: ILLEGAL, with the set in `found`; LEGAL when it never is, UNKNOWN when
   that takes more than so many looks, or too long. A caller that catches exhausted memory must close all three. */
static int advance_frontier(
    Frontier *f, Search *s, const Problem *p, int64_t looks_max, double deadline_s, Refutation *found) {
    memset(s, 0, sizeof *s);
    memset(f, 0, sizeof *f);
    memset(found, 0, sizeof *found);
    s->p = p;
    f->s = s;
    f->found = found;
    f->looks_max = looks_max;
    f->deadline_s = deadline_s;
    prepare(s);
    count_looks(f);
    f->masks.size = f->arrived_masks.size = s->masks.size;
    f->configurations.size = f->arrivals.size = sizeof(Configuration);
    found->rank.size = found->state.size = found->ahead_begin.size = found->ahead.size = sizeof(int32_t);
    found->used_begin.size = found->used.size = sizeof(int32_t);
    pool_add_int(s, &found->ahead_begin, 0);
    pool_add_int(s, &found->used_begin, 0);
    Configuration initial = {INITIAL, 0, NONE, 0};
    *(Configuration *)pool_add(s, &f->arrivals, 1) = initial;
    memset(pool_add(s, &f->arrived_masks, 1), 0, f->masks.size);
    grow_frontier_table(f);
    for (s->rank = 0; s->rank < p->completed; s->rank++) {
        if (pass_rank(f)) continue;
        found->furthest = s->rank;
        return f->is_given_up ? UNKNOWN : ILLEGAL;
    }
    return LEGAL;
}
