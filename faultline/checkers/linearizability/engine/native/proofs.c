/* The frontier and the verifier as the caller sees them: the columns of one key, and sets of configurations. */

struct FaultlineRefutation {
    Arena arena;
    Search search;
    Frontier frontier;
    Refutation found;
};

/* The columns of one key as a problem. They are not copied, except where appends without edges, which the caller gives as
   the empty span at 0, have to differ from the append whose edges begin there. */
static void take_whole(
    Problem *p, Arena *arena, int32_t size, int32_t values, const int8_t *kind, const int32_t *demand,
    const int32_t *produce, const int64_t *call, const int64_t *return_,
    int32_t edges, const int32_t *edge_from, const int32_t *edge_to) {
    memset(p, 0, sizeof *p);
    p->arena = arena;
    p->size = size;
    p->values = values;
    p->kind = (uint8_t *)kind;
    p->demand = (int32_t *)demand;
    p->produce = (int32_t *)produce;
    p->call = (int64_t *)call;
    p->return_ = (int64_t *)return_;
    p->edges = edges;
    p->edge_from = (int32_t *)edge_from;
    p->edge_to = (int32_t *)edge_to;
    p->edges_by_length = TAKE(arena, int32_t, edges + 1);
    int64_t *length = TAKE(arena, int64_t, edges + 1);
    for (int32_t e = 0; e < edges; e++) {
        p->edges_by_length[e] = e;
        length[e] = edge_from[e];
    }
    sort_by(length, p->edges_by_length, edges, arena);
    for (int32_t i = 0; i < size; i++) {
        p->failed += kind[i] == AVOID;
        p->appends += kind[i] == APPEND;
    }
    if (p->appends) {
        p->demand = memcpy(TAKE(arena, int32_t, size), demand, (size_t)size * sizeof *demand);
        p->produce = memcpy(TAKE(arena, int32_t, size), produce, (size_t)size * sizeof *produce);
        for (int32_t i = 0; i < size; i++)
            if (kind[i] == APPEND && produce[i] >= demand[i]) p->demand[i] = p->produce[i] = edges;
    }
    order_events(p);
}

FaultlineRefutation *faultline_refute(
    int32_t size, int32_t values, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_, int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int64_t looks_max, double timeout_s, int64_t *told) {
    FaultlineRefutation *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    Problem problem;
    if (setjmp(r->arena.out_of_memory)) {
        faultline_forget(r);
        return NULL;
    }
    take_whole(&problem, &r->arena, size, values, kind, demand, produce, call, return_, edges, edge_from, edge_to);
    double deadline_s = timeout_s > 0 ? now_s() + timeout_s : 0;
    told[0] = advance_frontier(&r->frontier, &r->search, &problem, looks_max, deadline_s, &r->found);
    told[1] = r->found.furthest;
    told[2] = r->found.looks;
    told[3] = (int64_t)r->found.rank.count;
    told[4] = (int64_t)r->found.ahead.count;
    told[5] = (int64_t)r->found.used.count;
    return r;
}

static void copy_out(const Pool *pool, int32_t *to) {
    if (pool->count) memcpy(to, pool->items, pool->count * sizeof *to);
}

void faultline_take_refutation(
    const FaultlineRefutation *r, int32_t *rank, int32_t *state,
    int32_t *ahead_begin, int32_t *ahead, int32_t *used_begin, int32_t *used) {
    copy_out(&r->found.rank, rank);
    copy_out(&r->found.state, state);
    copy_out(&r->found.ahead_begin, ahead_begin);
    copy_out(&r->found.ahead, ahead);
    copy_out(&r->found.used_begin, used_begin);
    copy_out(&r->found.used, used);
}

void faultline_forget(FaultlineRefutation *r) {
    close_frontier(&r->frontier);
    close_search(&r->search);
    close_refutation(&r->found);
    arena_close(&r->arena);
    free(r);
}

int faultline_verify(
    int32_t size, int32_t values, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_, int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int64_t count, const int32_t *rank, const int32_t *state, const int32_t *ahead_begin, const int32_t *ahead,
    const int32_t *used_begin, const int32_t *used, int64_t *at) {
    Arena arena;
    Problem problem;
    Verifier verifier;
    Members members = {count, rank, state, ahead_begin, ahead, used_begin, used};
    arena.last = NULL;
    if (setjmp(arena.out_of_memory)) {
        arena_close(&arena);
        return -1;
    }
    take_whole(&problem, &arena, size, values, kind, demand, produce, call, return_, edges, edge_from, edge_to);
    int fault = check_members(&verifier, &problem, &members, at);
    arena_close(&arena);
    return fault;
}
