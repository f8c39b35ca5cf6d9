/* The native form of the linearizability engine: one translation unit, made of the files it includes. */

#include "problem.h"
#include "replay.c"
#include "slots.c"
#include "zones.c"
#include "read_mapping.c"
#include "assignment.c"
#include "monitor.c"
#include "sets.c"
#include "generic.c"
#include "frontier.c"
#include "verify.c"
#include "containers.c"

#include "kernel.h"
#include "proofs.c"

#define KERNEL_VERSION 4
#define PATIENCE 8

typedef struct {
    int64_t operations;
    int32_t keys, values, edges, method;
    const int32_t *key, *demand, *produce, *edge_from, *edge_to;
    const int8_t *kind;
    const int64_t *call, *return_;
    double deadline_s;
    int8_t *verdict, *decided_by;
    int64_t *steps, *order_begin;
    int32_t *furthest, *state, *order_length, *order;
    /* working memory */
    Arena arena;
    Search search;
    int64_t *begin;           /* by key: where its operations begin in `grouped`; one more for the end */
    int32_t *grouped;
    int32_t *number, *named;  /* by value of the caller: its number in this key; and back */
    int32_t *taken_for;       /* in which taking that number was given */
    int32_t takings, named_count;
    int32_t *queue;           /* keys that need more steps */
    uint8_t *monitored;       /* by key: the monitor had its turn */
    int replay_failed;
} Batch;

int32_t faultline_kernel_version(void) { return KERNEL_VERSION; }

static void group_by_key(Batch *b) {
    for (int64_t i = 0; i < b->operations; i++) b->begin[b->key[i] + 1]++;
    for (int32_t k = 0; k < b->keys; k++) b->begin[k + 1] += b->begin[k];
    for (int64_t i = 0; i < b->operations; i++) b->grouped[b->begin[b->key[i]]++] = (int32_t)i;
    for (int32_t k = b->keys; k > 0; k--) b->begin[k] = b->begin[k - 1];
    b->begin[0] = 0;
}

static int32_t number_of(Batch *b, int32_t value) {
    if (b->taken_for[value] != b->takings) {
        b->taken_for[value] = b->takings;
        b->number[value] = b->named_count;
        b->named[b->named_count++] = value;
    }
    return b->number[value];
}

/* The edges of this key's appends, numbered anew, the shortest text first; they lie together in the caller's columns. */
static void take_edges(Batch *b, Problem *p) {
    int32_t first = INT32_MAX, end = 0;
    for (int32_t i = 0; i < p->size; i++) {
        if (p->kind[i] != APPEND || p->produce[i] >= p->demand[i]) continue;
        if (p->produce[i] < first) first = p->produce[i];
        if (p->demand[i] > end) end = p->demand[i];
    }
    p->edges = end > first ? end - first : 0;
    p->edge_from = TAKE(p->arena, int32_t, p->edges + 1);
    p->edge_to = TAKE(p->arena, int32_t, p->edges + 1);
    p->edges_by_length = TAKE(p->arena, int32_t, p->edges + 1);
    int64_t *length = TAKE(p->arena, int64_t, p->edges + 1);
    for (int32_t e = 0; e < p->edges; e++) {
        p->edge_from[e] = number_of(b, b->edge_from[first + e]);
        p->edge_to[e] = number_of(b, b->edge_to[first + e]);
        p->edges_by_length[e] = e;
        length[e] = b->edge_from[first + e];
    }
    sort_by(length, p->edges_by_length, p->edges, p->arena);
    for (int32_t i = 0; i < p->size; i++) {
        if (p->kind[i] != APPEND) continue;
        int32_t has_edges = p->produce[i] < p->demand[i];
        p->produce[i] = has_edges ? p->produce[i] - first : p->edges;
        p->demand[i] = has_edges ? p->demand[i] - first : p->edges;
    }
}

static void take_operations(Batch *b, Problem *p, int32_t key) {
    Arena *arena = &b->arena;
    memset(p, 0, sizeof *p);
    p->arena = arena;
    p->size = (int32_t)(b->begin[key + 1] - b->begin[key]);
    p->operation = b->grouped + b->begin[key];
    p->kind = TAKE(arena, uint8_t, p->size);
    p->demand = TAKE(arena, int32_t, p->size);
    p->produce = TAKE(arena, int32_t, p->size);
    p->call = TAKE(arena, int64_t, p->size);
    p->return_ = TAKE(arena, int64_t, p->size);
    b->named_count = 0;
    b->takings++;
    number_of(b, 0);
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->operation[k], kind = b->kind[i];
        p->kind[k] = (uint8_t)kind;
        p->call[k] = b->call[i];
        p->return_[k] = b->return_[i];
        p->demand[k] = kind == WRITE ? 0 : kind == APPEND ? b->demand[i] : number_of(b, b->demand[i]);
        p->produce[k] = kind < WRITE ? 0 : kind == APPEND ? b->produce[i] : number_of(b, b->produce[i]);
        p->failed += kind == AVOID;
        p->appends += kind == APPEND;
    }
    if (p->appends) take_edges(b, p);
    p->values = b->named_count;
}

static void answer(Batch *b, const Problem *p, int32_t key, int verdict, int method, const SearchAnswer *found) {
    int32_t *order = b->order + b->begin[key];
    b->verdict[key] = (int8_t)verdict;
    b->decided_by[key] = (int8_t)method;
    b->steps[key] += found->steps;
    b->furthest[key] = found->furthest;
    b->state[key] = found->state == DEAD ? DEAD : b->named[found->state];
    b->order_length[key] = found->length;
    for (int32_t k = 0; k < found->length; k++) order[k] = p->operation[order[k]];
}

/* Whether the monitor has its turn after a search of `before` steps: at once, but late where values repeat often. */
static int is_due(Batch *b, const Problem *p, int32_t key, int64_t before) {
    if (b->method == BY_SEARCH || p->appends || b->monitored[key]) return 0;
    return b->monitored[key] = before >= 2 * (int64_t)p->size || !repeats_often(p);
}

/* Judge one key with so many steps, after a search of `before` steps did not decide it; whether it is decided. */
static int judge(Batch *b, int32_t key, int64_t steps_max, int64_t before) {
    Problem problem;
    int32_t *order = b->order + b->begin[key];
    SearchAnswer found = {-1, DEAD, 0, 0};
    arena_reset(&b->arena);
    take_operations(b, &problem, key);
    order_events(&problem);
    int verdict = UNKNOWN, method = BY_ZONES;
    if (is_due(b, &problem, key, before)) verdict = check_zones(&problem, order, &found.length);
    if (verdict == LEGAL) {
        found.furthest = problem.completed;
        found.state = INITIAL;
        for (int32_t k = 0; k < found.length; k++)
            if (problem.kind[order[k]] >= WRITE) found.state = problem.produce[order[k]];
    }
    if (verdict == UNKNOWN) {
        found.length = 0;
        method = BY_SEARCH;
        verdict = check_slots(&b->search, &problem, steps_max, b->deadline_s, order, &found);
    }
    if (verdict == LEGAL && !is_linearization(&problem, order, found.length)) b->replay_failed = 1;
    answer(b, &problem, key, verdict, method, &found);
    return verdict != UNKNOWN;
}

/* Every key gets a little at first, and who needs more gets it only when all had their turn. */
static void judge_all(Batch *b, int64_t first_steps, int64_t steps_max) {
    int32_t waiting = 0, *queue = b->queue;
    int64_t steps = first_steps < steps_max ? first_steps : steps_max;
    for (int32_t key = 0; key < b->keys; key++)
        if (!judge(b, key, steps, 0)) queue[waiting++] = key;
    while (waiting && steps < steps_max && !(b->deadline_s > 0 && now_s() >= b->deadline_s)) {
        int32_t still = 0;
        int64_t before = steps;
        steps = steps > steps_max / PATIENCE ? steps_max : PATIENCE * steps;
        for (int32_t w = 0; w < waiting; w++)
            if (!judge(b, queue[w], steps, before)) queue[still++] = queue[w];
        waiting = still;
    }
}

static void *zeroed(Batch *b, size_t count, size_t size) {
    void *taken = calloc(count + 1, size);
    if (!taken) longjmp(b->arena.out_of_memory, 1);
    return taken;
}

static void close_batch(Batch *b) {
    close_search(&b->search);
    arena_close(&b->arena);
    free(b->begin);
    free(b->grouped);
    free(b->number);
    free(b->named);
    free(b->taken_for);
    free(b->queue);
    free(b->monitored);
    free(b);
}

int faultline_check(
    int64_t operations, int32_t keys, int32_t values,
    const int32_t *key, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_,
    int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int32_t method, int64_t first_steps, int64_t steps_max, double timeout_s,
    int8_t *verdict, int8_t *decided_by, int64_t *steps, int32_t *furthest, int32_t *state,
    int64_t *order_begin, int32_t *order_length, int32_t *order) {
    Batch *b = calloc(1, sizeof *b);
    if (!b) return 1;
    Batch given = {
        .operations = operations, .keys = keys, .values = values, .edges = edges, .method = method,
        .key = key, .kind = kind, .demand = demand, .produce = produce, .call = call, .return_ = return_,
        .edge_from = edge_from, .edge_to = edge_to, .deadline_s = timeout_s > 0 ? now_s() + timeout_s : 0,
        .verdict = verdict, .decided_by = decided_by, .steps = steps, .order_begin = order_begin,
        .furthest = furthest, .state = state, .order_length = order_length, .order = order,
    };
    *b = given;
    if (setjmp(b->arena.out_of_memory)) {
        close_batch(b);
        return 1;
    }
    b->begin = zeroed(b, (size_t)keys + 1, sizeof *b->begin);
    b->grouped = zeroed(b, (size_t)operations, sizeof *b->grouped);
    b->number = zeroed(b, (size_t)values, sizeof *b->number);
    b->named = zeroed(b, (size_t)values, sizeof *b->named);
    b->taken_for = zeroed(b, (size_t)values, sizeof *b->taken_for);
    b->queue = zeroed(b, (size_t)keys, sizeof *b->queue);
    b->monitored = zeroed(b, (size_t)keys, sizeof *b->monitored);
    group_by_key(b);
    memcpy(order_begin, b->begin, (size_t)keys * sizeof *order_begin);
    judge_all(b, first_steps, steps_max);
    int result = b->replay_failed ? 2 : 0;
    close_batch(b);
    return result;
}
