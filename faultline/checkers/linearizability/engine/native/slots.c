/* The slot search: see ../slots.py, which explains the idea and the rules R1 to R8 that are only named here.

   Differences are of representation only: masks are words, visited configurations stand in an open-addressing table,
   and the pending operations used so far are a node of a tree that grows with the search, compared by what differs. */

#include <time.h>

typedef struct {
    int32_t rank, ahead;   /* next return; where the mask of linearized slots is kept in `masks` */
    int32_t state, used;   /* `used`: the node of pending operations */
    int32_t length;        /* of the path */
    int32_t begin, choice; /* of its candidates, and the next one to try */
} Frame;

typedef struct {
    int32_t rank, state, used, next; /* `next` entry with the same rank, state and mask, but other pending operations */
} Entry;

typedef struct {
    int32_t parent, group, depth;
} Used;

typedef struct {
    void *items;
    size_t count, room, size;
} Pool;

typedef struct {
    const Problem *p;
    /* completed operations */
    int32_t slots, words;
    int32_t *slot;          /* by operation */
    int32_t *in_slot;       /* the operation that holds it now, or NONE */
    int32_t *opening;       /* completed operations in order of call */
    int32_t *opened_at;     /* by rank: how many of them are open or done */
    int32_t opened;
    int32_t *observers;     /* by value: who may still look for it */
    int32_t *seers;         /* by value: completed operations, not linearized yet, that must find it */
    int32_t *producers;     /* by value: operations, not linearized yet, that put it */
    int32_t *all_producers; /* by value: linearized or not */
    int has_swaps;          /* a compare-and-set returned */
    int32_t *called_producers; /* by completed operation: those of the value it demands that are called before it returns */
    int32_t *leaving, *owed, *owed_stamp; /* open compare-and-sets in order of return; by value: how many so far */
    int32_t *last_get;      /* by value, with appends: the last rank that looks for what begins with it */
    /* pending operations, in groups of equal ones */
    int32_t groups, pending;
    int32_t first_pending;  /* position of the first call of any */
    int32_t *group_of, *member, *group_begin, *taken; /* members of a group lie together, in order of call */
    int32_t *by_produce, *next_by_produce, *by_demand, *next_by_demand; /* lists of groups by value */
    int32_t *writes, write_groups, *append_groups, append_group_count;
    /* the search's own state */
    int32_t rank, state, used;
    uint64_t *ahead;
    int32_t *path, length;
    Pool frames, masks, candidates, entries, entry_masks, nodes;
    int32_t *table;
    size_t table_size;
    /* stamps: equal to `stamp` when marked in this step */
    int32_t stamp, *write_stamp, *swap_stamp, *want_stamp, *group_stamp, *wanted, dead_write_stamp, dead_swap_stamp;
    int32_t *difference;
    /* the best so far */
    int32_t furthest, furthest_state, best_length, unchanged;
    int32_t *best;
    int64_t steps;
} Search;

static void *pool_add(Search *s, Pool *pool, size_t count) {
    if (pool->count + count > pool->room) {
        size_t room = pool->room ? 2 * pool->room : 256;
        while (room < pool->count + count) room *= 2;
        void *items = realloc(pool->items, room * pool->size);
        if (!items) longjmp(s->p->arena->out_of_memory, 1);
        pool->items = items;
        pool->room = room;
    }
    void *added = (char *)pool->items + pool->count * pool->size;
    pool->count += count;
    return added;
}

static void pool_free(Pool *pool) {
    free(pool->items);
    pool->items = NULL;
    pool->count = pool->room = 0;
}

#define FRAME(s, i) (((Frame *)(s)->frames.items) + (i))
#define NODE(s, i) (((Used *)(s)->nodes.items) + (i))
#define ENTRY(s, i) (((Entry *)(s)->entries.items) + (i))
#define CANDIDATE(s, i) (((int32_t *)(s)->candidates.items)[i])

static int is_ahead(const Search *s, int32_t slot) { return s->ahead[slot >> 6] >> (slot & 63) & 1; }

static int is_pending(const Problem *p, int32_t i) { return p->return_at[i] == NEVER; }

/* -- preparation ------------------------------------------------------------------------------------------------ */

static void assign_slots(Search *s) {
    const Problem *p = s->p;
    int32_t *free_slots = TAKE(p->arena, int32_t, p->completed + 1), free_count = 0, c = 0;
    s->slot = TAKE(p->arena, int32_t, p->size);
    s->opening = TAKE(p->arena, int32_t, p->completed + 1);
    s->opened_at = TAKE(p->arena, int32_t, p->completed + 1);
    for (int32_t k = 0; k < p->size; k++)
        if (!is_pending(p, p->by_call[k])) s->opening[c++] = p->by_call[k];
    c = 0;
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t returning = p->by_return[r];
        for (; c < p->completed && p->call_at[s->opening[c]] < p->return_at[returning]; c++)
            s->slot[s->opening[c]] = free_count ? free_slots[--free_count] : s->slots++;
        s->opened_at[r] = c;
        free_slots[free_count++] = s->slot[returning];
    }
    s->words = (s->slots + 63) / 64;
    if (!s->words) s->words = 1;
    s->in_slot = TAKE(p->arena, int32_t, s->slots + 1);
    memset(s->in_slot, 0xff, ((size_t)s->slots + 1) * sizeof *s->in_slot);
    s->ahead = TAKE_ZEROED(p->arena, uint64_t, s->words);
}

/* Count an operation in (by 1) when it is to be linearized, or out (by -1) when it was. */
static void count_in(Search *s, int32_t i, int32_t by) {
    const Problem *p = s->p;
    int kind = p->kind[i];
    if (kind == APPEND) return;
    if (kind >= WRITE) s->producers[p->produce[i]] += by;
    if (kind == WRITE || is_pending(p, i)) return;
    s->observers[p->demand[i]] += by;
    if (kind != AVOID) s->seers[p->demand[i]] += by;
}

static void count_observers(Search *s) {
    const Problem *p = s->p;
    s->observers = TAKE_ZEROED(p->arena, int32_t, p->values);
    s->seers = TAKE_ZEROED(p->arena, int32_t, p->values);
    s->producers = TAKE_ZEROED(p->arena, int32_t, p->values);
    for (int32_t i = 0; i < p->size; i++)
        count_in(s, i, 1);
    for (int32_t i = 0; i < p->size; i++)
        if (is_pending(p, i) && p->kind[i] == SWAP) s->observers[p->demand[i]]++;
    if (!p->appends) return;
    s->last_get = TAKE(p->arena, int32_t, p->values);
    memset(s->last_get, 0xff, (size_t)p->values * sizeof *s->last_get);
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t i = p->by_return[r];
        if (p->kind[i] != WRITE && p->kind[i] != APPEND) s->last_get[p->demand[i]] = r;
    }
    /* From the longest text backwards, so that what continues a text is settled before the text itself. */
    for (int32_t k = p->edges - 1; k >= 0; k--) {
        int32_t e = p->edges_by_length[k], *last = &s->last_get[p->edge_from[e]];
        if (s->last_get[p->edge_to[e]] > *last) *last = s->last_get[p->edge_to[e]];
    }
}

/* For R8: which producers of a value may come before a completed operation that demands it. */
static void count_producers(Search *s) {
    const Problem *p = s->p;
    int32_t *called = TAKE_ZEROED(p->arena, int32_t, p->values), c = 0;
    s->called_producers = TAKE(p->arena, int32_t, p->size);
    s->all_producers = TAKE(p->arena, int32_t, p->values);
    s->leaving = TAKE(p->arena, int32_t, s->slots + 1);
    s->owed = TAKE(p->arena, int32_t, p->values);
    s->owed_stamp = TAKE_ZEROED(p->arena, int32_t, p->values);
    memcpy(s->all_producers, s->producers, (size_t)p->values * sizeof *s->all_producers);
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t i = p->by_return[r];
        for (; c < p->size && p->call_at[p->by_call[c]] < p->return_at[i]; c++)
            if (p->kind[p->by_call[c]] >= WRITE) called[p->produce[p->by_call[c]]]++;
        s->called_producers[i] = called[p->demand[i]];
        s->has_swaps |= p->kind[i] == SWAP;
    }
}

static int is_alive(const Search *s, int32_t value) {
    if (value == DEAD) return 0;
    return s->p->appends ? s->last_get[value] >= s->rank : s->observers[value] > 0;
}

/* Pending operations as (kind, demand, produce), values that are never looked for as one, sorted into groups. */
static void group_pending(Search *s) {
    const Problem *p = s->p;
    int32_t *items = TAKE(p->arena, int32_t, p->size + 1), count = 0;
    int64_t *key = TAKE(p->arena, int64_t, p->size + 1);
    s->first_pending = NEVER;
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k], kind = p->kind[i];
        if (!is_pending(p, i) || kind < WRITE) continue;
        int32_t produce = p->produce[i];
        if (kind != APPEND && !(p->appends ? s->last_get[produce] >= 0 : s->observers[produce] > 0)) produce = DEAD;
        if (p->appends && kind == WRITE && produce == DEAD) continue;
        if (s->first_pending == NEVER) s->first_pending = p->call_at[i];
        int64_t demand = kind == SWAP ? p->demand[i] : kind == WRITE ? -1 : -2;
        key[i] = (demand + 2) * ((int64_t)1 << 32) + (produce + 1);
        items[count++] = i;
    }
    sort_by(key, items, count, p->arena);
    s->pending = count;
    s->member = items;
    s->group_of = TAKE(p->arena, int32_t, p->size);
    s->group_begin = TAKE(p->arena, int32_t, count + 2);
    for (int32_t k = 0; k < count; k++) {
        if (!k || key[items[k]] != key[items[k - 1]]) s->group_begin[s->groups++] = k;
        s->group_of[items[k]] = s->groups - 1;
    }
    s->group_begin[s->groups] = count;
}

static int32_t group_kind(const Search *s, int32_t g) { return s->p->kind[s->member[s->group_begin[g]]]; }

static int32_t group_demand(const Search *s, int32_t g) { return s->p->demand[s->member[s->group_begin[g]]]; }

static int32_t group_produce(const Search *s, int32_t g) { return s->p->produce[s->member[s->group_begin[g]]]; }

static void index_groups(Search *s) {
    const Problem *p = s->p;
    Arena *arena = p->arena;
    s->taken = TAKE_ZEROED(arena, int32_t, s->groups + 1);
    s->group_stamp = TAKE_ZEROED(arena, int32_t, s->groups + 1);
    s->difference = TAKE_ZEROED(arena, int32_t, s->groups + 1);
    s->by_produce = TAKE(arena, int32_t, p->values);
    s->by_demand = TAKE(arena, int32_t, p->values);
    s->next_by_produce = TAKE(arena, int32_t, s->groups + 1);
    s->next_by_demand = TAKE(arena, int32_t, s->groups + 1);
    s->writes = TAKE(arena, int32_t, s->groups + 1);
    s->append_groups = TAKE(arena, int32_t, s->groups + 1);
    memset(s->by_produce, 0xff, (size_t)p->values * sizeof *s->by_produce);
    memset(s->by_demand, 0xff, (size_t)p->values * sizeof *s->by_demand);
    for (int32_t g = s->groups - 1; g >= 0; g--) {
        int32_t kind = group_kind(s, g);
        if (kind == APPEND) {
            s->append_groups[s->append_group_count++] = g;
            continue;
        }
        int32_t produce = group_produce(s, g);
        s->next_by_produce[g] = s->by_produce[produce];
        s->by_produce[produce] = g;
        if (kind == WRITE) {
            s->writes[s->write_groups++] = g;
        } else {
            int32_t demand = group_demand(s, g);
            s->next_by_demand[g] = s->by_demand[demand];
            s->by_demand[demand] = g;
        }
    }
}

static void prepare(Search *s) {
    const Problem *p = s->p;
    assign_slots(s);
    count_observers(s);
    if (!p->appends) count_producers(s);
    group_pending(s);
    index_groups(s);
    s->write_stamp = TAKE_ZEROED(p->arena, int32_t, p->values);
    s->swap_stamp = TAKE_ZEROED(p->arena, int32_t, p->values);
    s->want_stamp = TAKE_ZEROED(p->arena, int32_t, p->values);
    s->wanted = TAKE(p->arena, int32_t, p->values);
    s->path = TAKE(p->arena, int32_t, p->size + 1);
    s->best = TAKE(p->arena, int32_t, p->size + 1);
    s->frames.size = sizeof(Frame);
    s->masks.size = s->entry_masks.size = (size_t)s->words * sizeof(uint64_t);
    s->candidates.size = sizeof(int32_t);
    s->entries.size = sizeof(Entry);
    s->nodes.size = sizeof(Used);
    s->furthest = -1;
    Used root = {-1, -1, 0};
    *(Used *)pool_add(s, &s->nodes, 1) = root;
}

/* -- moving ------------------------------------------------------------------------------------------------------- */

static void open_window(Search *s) {
    for (; s->opened < s->opened_at[s->rank]; s->opened++) {
        int32_t i = s->opening[s->opened];
        s->in_slot[s->slot[i]] = i;
    }
}

static void advance(Search *s) {
    const Problem *p = s->p;
    while (s->rank < p->completed) {
        int32_t slot = s->slot[p->by_return[s->rank]];
        if (!is_ahead(s, slot)) return;
        s->ahead[slot >> 6] &= ~((uint64_t)1 << (slot & 63));
        s->in_slot[slot] = NONE;
        if (++s->rank < p->completed) open_window(s);
    }
}

static void retreat(Search *s, int32_t rank) {
    const Problem *p = s->p;
    while (s->rank > rank) {
        s->rank--;
        while (s->opened > s->opened_at[s->rank]) s->in_slot[s->slot[s->opening[--s->opened]]] = NONE;
        int32_t returning = p->by_return[s->rank];
        s->in_slot[s->slot[returning]] = returning;
    }
}

static void linearize(Search *s, int32_t i) {
    const Problem *p = s->p;
    s->path[s->length++] = i;
    if (is_pending(p, i)) {
        int32_t group = s->group_of[i];
        s->taken[group]++;
        Used node = {s->used, group, NODE(s, s->used)->depth + 1};
        s->used = (int32_t)s->nodes.count;
        *(Used *)pool_add(s, &s->nodes, 1) = node;
    } else {
        int32_t slot = s->slot[i];
        s->ahead[slot >> 6] |= (uint64_t)1 << (slot & 63);
    }
    count_in(s, i, -1);
    if (p->kind[i] == APPEND) s->state = appended(p, i, s->state);
    else if (p->kind[i] >= WRITE) s->state = p->produce[i];
}

static void return_to(Search *s, const Frame *frame) {
    const Problem *p = s->p;
    while (s->length > frame->length) {
        int32_t i = s->path[--s->length];
        if (is_pending(p, i)) s->taken[s->group_of[i]]--;
        count_in(s, i, 1);
    }
    if (s->length < s->unchanged) s->unchanged = s->length;
    retreat(s, frame->rank);
    memcpy(s->ahead, (uint64_t *)s->masks.items + (size_t)frame->ahead * s->words, s->masks.size);
    s->state = frame->state;
    s->used = frame->used;
}

static void remember_furthest(Search *s) {
    if (s->rank <= s->furthest) return;
    s->furthest = s->rank;
    s->furthest_state = s->state;
    memcpy(s->best + s->unchanged, s->path + s->unchanged, (size_t)(s->length - s->unchanged) * sizeof *s->best);
    s->best_length = s->unchanged = s->length;
}

/* -- candidates --------------------------------------------------------------------------------------------------- */

/* R1: what changes nothing and is legal now is linearized at once. */
static void observe_at_once(Search *s) {
    const Problem *p = s->p;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t i = s->in_slot[slot];
        if (i == NONE || is_ahead(s, slot)) continue;
        if ((p->kind[i] == OBSERVE && p->demand[i] == s->state) || (p->kind[i] == AVOID && p->demand[i] != s->state))
            linearize(s, i);
    }
}

/* R7: whether the state may be left by an operation that accounts for so many of those who must find it. */
static int may_leave(const Search *s, int32_t accounted) {
    return s->state == DEAD || s->p->appends || s->seers[s->state] <= accounted || s->producers[s->state] > 0;
}

static int is_available(const Search *s, int32_t g) {
    int32_t k = s->group_begin[g] + s->taken[g];
    return k < s->group_begin[g + 1] && s->p->call_at[s->member[k]] < s->p->return_at[s->p->by_return[s->rank]];
}

static void choose_pending(Search *s, int32_t g) {
    if (s->group_stamp[g] == s->stamp || group_produce(s, g) == s->state || !may_leave(s, 0)) return;
    s->group_stamp[g] = s->stamp;
    *(int32_t *)pool_add(s, &s->candidates, 1) = s->member[s->group_begin[g] + s->taken[g]];
}

static void want(Search *s, int32_t value, int32_t *height) {
    if (s->want_stamp[value] == s->stamp) return;
    s->want_stamp[value] = s->stamp;
    s->wanted[(*height)++] = value;
}

/* R4: a pending operation is used only to make another one legal, directly or through further pending ones. */
static void add_wanted(Search *s, int32_t height) {
    while (height) {
        int32_t value = s->wanted[--height];
        for (int32_t g = s->by_produce[value]; g != NONE; g = s->next_by_produce[g]) {
            if (!is_available(s, g)) continue;
            if (group_kind(s, g) == WRITE || group_demand(s, g) == s->state) choose_pending(s, g);
            else want(s, group_demand(s, g), &height);
        }
    }
}

static void add_leaving(Search *s) {
    for (int32_t k = 0; k < s->write_groups; k++)
        if (is_available(s, s->writes[k])) choose_pending(s, s->writes[k]);
    if (s->state == DEAD) return;
    for (int32_t g = s->by_demand[s->state]; g != NONE; g = s->next_by_demand[g])
        if (is_available(s, g)) choose_pending(s, g);
}

static void add_pending_appends(Search *s) {
    for (int32_t k = 0; k < s->append_group_count; k++) {
        int32_t g = s->append_groups[k];
        if (!is_available(s, g)) continue;
        int32_t i = s->member[s->group_begin[g] + s->taken[g]];
        if (is_alive(s, appended(s->p, i, s->state))) *(int32_t *)pool_add(s, &s->candidates, 1) = i;
    }
}

/* R2 and R5: of equal open operations only the first to return; all values that no operation looks for are equal. */
static int is_repeated(Search *s, int32_t i, int32_t begin) {
    const Problem *p = s->p;
    int32_t *stamp;
    if (p->kind[i] == APPEND) {
        for (size_t k = (size_t)begin; k < s->candidates.count; k++) {
            int32_t other = CANDIDATE(s, k);
            if (p->kind[other] == APPEND && p->produce[other] == p->produce[i] && p->demand[other] == p->demand[i]) return 1;
        }
        return 0;
    }
    int alive = is_alive(s, p->produce[i]);
    if (p->kind[i] == SWAP) stamp = alive ? &s->swap_stamp[p->produce[i]] : &s->dead_swap_stamp;
    else stamp = alive ? &s->write_stamp[p->produce[i]] : &s->dead_write_stamp;
    int repeated = *stamp == s->stamp;
    *stamp = s->stamp;
    return repeated;
}

/* R6: whether the next one to return, illegal now, could be made legal by another operation. */
static int can_be_supplied(const Search *s, int32_t next, int32_t suppliers, int has_other) {
    const Problem *p = s->p;
    int has_pending = s->first_pending < p->return_at[next];
    if (p->appends || suppliers) return 1;
    if (p->kind[next] == AVOID) return has_other || has_pending;
    if (!has_pending) return 0;
    for (int32_t g = s->by_produce[p->demand[next]]; g != NONE; g = s->next_by_produce[g])
        if (is_available(s, g)) return 1;
    return 0;
}

/* How often the value that a completed operation demands may still be put before it returns. */
static int32_t supply_of(const Search *s, int32_t i) {
    int32_t value = s->p->demand[i];
    return s->called_producers[i] - (s->all_producers[value] - s->producers[value]) + (s->state == value);
}

/* R8: whether more open operations must find a value before some return than it can be put before that. */
static int is_short(Search *s) {
    const Problem *p = s->p;
    int32_t count = 0;
    if (!s->has_swaps) return 0;
    s->stamp++;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t i = s->in_slot[slot], k = count;
        if (i == NONE || is_ahead(s, slot) || (p->kind[i] != OBSERVE && p->kind[i] != SWAP)) continue;
        if (supply_of(s, i) < 1) return 1;
        if (p->kind[i] == OBSERVE) continue;
        for (; k > 0 && p->return_at[s->leaving[k - 1]] > p->return_at[i]; k--) s->leaving[k] = s->leaving[k - 1];
        s->leaving[k] = i;
        count++;
    }
    for (int32_t k = 0; k < count; k++) {
        int32_t i = s->leaving[k], value = p->demand[i];
        if (s->owed_stamp[value] != s->stamp) s->owed[value] = 0;
        s->owed_stamp[value] = s->stamp;
        if (++s->owed[value] > supply_of(s, i)) return 1;
    }
    return 0;
}

/* Sort operations by return; those that put `sought`, if it is a value, come first. */
static void sort_candidates(const Problem *p, int32_t *found, int32_t count, int32_t sought) {
    for (int32_t k = 1; k < count; k++) {
        int32_t i = found[k], supplies = p->produce[i] == sought, j = k;
        for (; j > 0; j--) {
            int32_t before = found[j - 1], also = p->produce[before] == sought;
            if (also == supplies ? p->return_at[before] < p->return_at[i] : also) break;
            found[j] = before;
        }
        found[j] = i;
    }
}

/* Add what may be linearized next to the candidates, the first to try last; answers how many. */
static int32_t gather_candidates(Search *s) {
    const Problem *p = s->p;
    int32_t next = p->by_return[s->rank], begin = (int32_t)s->candidates.count, height = 0;
    int32_t sought = p->demand[next], suppliers = 0;
    int has_other = 0, must_leave = 0, next_is_legal = 0;
    s->stamp++;
    for (int32_t slot = 0; slot < s->slots; slot++) {
        int32_t i = s->in_slot[slot];
        if (i == NONE || is_ahead(s, slot)) continue;
        int kind = p->kind[i];
        if (kind == WRITE || kind == APPEND || (kind == SWAP && p->demand[i] == s->state)) {
            next_is_legal |= i == next;
            if (may_leave(s, kind == SWAP)) *(int32_t *)pool_add(s, &s->candidates, 1) = i;
        } else if (kind == AVOID) {
            must_leave = 1;
        } else {
            want(s, p->demand[i], &height);
        }
        if (i != next && (kind == WRITE || kind == SWAP)) {
            suppliers += p->produce[i] == sought;
            has_other |= p->produce[i] != sought;
        }
    }
    if (p->kind[next] == AVOID) suppliers = 0;
    if (!next_is_legal && !can_be_supplied(s, next, suppliers, has_other)) {
        s->candidates.count = (size_t)begin;
        return 0;
    }
    /* In order of return, what the next to return waits for first, and each kind once. */
    int32_t count = (int32_t)s->candidates.count - begin, kept = 0;
    int32_t *found = &CANDIDATE(s, begin);
    sort_candidates(p, found, count, next_is_legal || p->kind[next] == AVOID || p->appends ? DEAD : sought);
    s->candidates.count = (size_t)begin;
    for (int32_t k = 0; k < count; k++) {
        int32_t i = found[k];
        if (is_repeated(s, i, begin)) continue;
        found[kept++] = i;
        s->candidates.count++;
    }
    if (s->first_pending < p->return_at[next]) {
        if (p->appends) {
            add_leaving(s);
            add_pending_appends(s);
        } else {
            add_wanted(s, height);
            if (must_leave) add_leaving(s);
        }
    }
    count = (int32_t)s->candidates.count - begin;
    found = &CANDIDATE(s, begin);
    for (int32_t k = 0; k < count / 2; k++) {
        int32_t swapped = found[k];
        found[k] = found[count - 1 - k];
        found[count - 1 - k] = swapped;
    }
    return count;
}

/* -- visited configurations --------------------------------------------------------------------------------------- */

static uint64_t mix(uint64_t h) {
    h ^= h >> 32;
    h *= 0x9E3779B97F4A7C15u;
    return h ^ h >> 29;
}

static size_t place_of(const Search *s, int32_t rank, int32_t state, const uint64_t *mask) {
    uint64_t h = mix((uint64_t)(uint32_t)rank << 32 | (uint32_t)state);
    for (int32_t w = 0; w < s->words; w++) h = mix(h ^ mask[w]);
    return (size_t)h & (s->table_size - 1);
}

static const uint64_t *entry_mask(const Search *s, int32_t e) {
    return (const uint64_t *)s->entry_masks.items + (size_t)e * s->words;
}

static void grow_table(Search *s) {
    free(s->table);
    s->table_size = s->table_size ? 2 * s->table_size : 1024;
    s->table = malloc(s->table_size * sizeof *s->table);
    if (!s->table) longjmp(s->p->arena->out_of_memory, 1);
    memset(s->table, 0xff, s->table_size * sizeof *s->table);
    uint8_t *linked = calloc(s->entries.count + 1, 1);
    if (!linked) longjmp(s->p->arena->out_of_memory, 1);
    for (size_t e = 0; e < s->entries.count; e++)
        if (ENTRY(s, e)->next >= 0) linked[ENTRY(s, e)->next] = 1;
    for (size_t e = 0; e < s->entries.count; e++) {
        if (linked[e]) continue; /* reached through the head of its list */
        size_t k = place_of(s, ENTRY(s, e)->rank, ENTRY(s, e)->state, entry_mask(s, (int32_t)e));
        while (s->table[k] >= 0) k = (k + 1) & (s->table_size - 1);
        s->table[k] = (int32_t)e;
    }
    free(linked);
}

/* R3: whether the pending operations of node `less` are among those of node `more`, group by group. */
static int is_within(Search *s, int32_t less, int32_t more) {
    int32_t a = less, b = more, within = 1;
    if (NODE(s, a)->depth > NODE(s, b)->depth) return 0;
    while (a != b) {
        if (NODE(s, a)->depth > NODE(s, b)->depth) {
            s->difference[NODE(s, a)->group]--;
            a = NODE(s, a)->parent;
        } else {
            s->difference[NODE(s, b)->group]++;
            b = NODE(s, b)->parent;
        }
    }
    for (int32_t k = less; k != a; k = NODE(s, k)->parent) within &= s->difference[NODE(s, k)->group] >= 0;
    for (int32_t k = less; k != a; k = NODE(s, k)->parent) s->difference[NODE(s, k)->group] = 0;
    for (int32_t k = more; k != a; k = NODE(s, k)->parent) s->difference[NODE(s, k)->group] = 0;
    return within;
}

/* Whether this configuration, or a more hopeful one, was visited before; else it is from now on. */
static int is_visited(Search *s) {
    if (2 * (s->entries.count + 1) > s->table_size) grow_table(s);
    size_t k = place_of(s, s->rank, s->state, s->ahead);
    for (; s->table[k] >= 0; k = (k + 1) & (s->table_size - 1)) {
        int32_t head = s->table[k];
        const Entry *entry = ENTRY(s, head);
        if (entry->rank != s->rank || entry->state != s->state) continue;
        if (memcmp(entry_mask(s, head), s->ahead, s->entry_masks.size)) continue;
        for (int32_t e = head; e >= 0; e = ENTRY(s, e)->next)
            if (is_within(s, ENTRY(s, e)->used, s->used)) return 1;
        break;
    }
    Entry added = {s->rank, s->state, s->used, s->table[k]};
    s->table[k] = (int32_t)s->entries.count;
    *(Entry *)pool_add(s, &s->entries, 1) = added;
    memcpy(pool_add(s, &s->entry_masks, 1), s->ahead, s->entry_masks.size);
    return 0;
}

/* -- the search --------------------------------------------------------------------------------------------------- */

static double now_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void push_frame(Search *s, int32_t begin) {
    Frame frame = {s->rank, (int32_t)s->masks.count, s->state, s->used, s->length, begin, (int32_t)s->candidates.count - 1};
    memcpy(pool_add(s, &s->masks, 1), s->ahead, s->masks.size);
    *(Frame *)pool_add(s, &s->frames, 1) = frame;
}

/* Go back to the last configuration with a choice left, and take it; 0 when there is none. */
static int take_next_choice(Search *s) {
    while (s->frames.count) {
        Frame *frame = FRAME(s, s->frames.count - 1);
        if (frame->choice >= frame->begin) {
            return_to(s, frame);
            linearize(s, CANDIDATE(s, frame->choice--));
            return 1;
        }
        s->candidates.count = (size_t)frame->begin;
        s->frames.count--;
        s->masks.count--;
    }
    return 0;
}

static int run_search(Search *s, int64_t steps_max, double deadline_s) {
    const Problem *p = s->p;
    int is_forced = 0;
    if (p->completed) open_window(s);
    for (;;) {
        advance(s);
        if (s->rank == p->completed) return LEGAL;
        if (s->steps >= steps_max || (deadline_s > 0 && s->steps % 1024 == 1023 && now_s() >= deadline_s)) return UNKNOWN;
        s->steps++;
        observe_at_once(s);
        if (is_ahead(s, s->slot[p->by_return[s->rank]])) continue;
        if (!is_alive(s, s->state)) s->state = DEAD;
        int32_t begin = (int32_t)s->candidates.count, count = 0;
        if (is_forced || !is_visited(s)) {
            count = is_short(s) ? 0 : gather_candidates(s);
            if (!count) remember_furthest(s);
        }
        if (count == 1) {
            is_forced = 1;
            s->candidates.count = (size_t)begin;
            linearize(s, CANDIDATE(s, begin));
            continue;
        }
        is_forced = 0;
        if (count) push_frame(s, begin);
        if (!take_next_choice(s)) return ILLEGAL;
    }
}

typedef struct {
    int32_t furthest, state, length;
    int64_t steps;
} SearchAnswer;

static void close_search(Search *s) {
    pool_free(&s->frames);
    pool_free(&s->masks);
    pool_free(&s->candidates);
    pool_free(&s->entries);
    pool_free(&s->entry_masks);
    pool_free(&s->nodes);
    free(s->table);
    s->table = NULL;
    s->table_size = 0;
}

/* Search a linearization; `order` takes it, or the longest one before the first operation that cannot be placed.
   A caller that catches exhausted memory must close the search. */
static int check_slots(
    Search *search, const Problem *p, int64_t steps_max, double deadline_s, int32_t *order, SearchAnswer *answer) {
    memset(search, 0, sizeof *search);
    search->p = p;
    prepare(search);
    int verdict = run_search(search, steps_max, deadline_s);
    if (verdict == UNKNOWN) remember_furthest(search);
    const int32_t *path = verdict == LEGAL ? search->path : search->best;
    answer->length = verdict == LEGAL ? search->length : search->best_length;
    answer->furthest = verdict == LEGAL ? p->completed : search->furthest;
    answer->state = verdict == LEGAL ? search->state : search->furthest_state;
    answer->steps = search->steps;
    memcpy(order, path, (size_t)answer->length * sizeof *order);
    close_search(search);
    return verdict;
}
