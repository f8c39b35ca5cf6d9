/* Queues and stacks into which every value is put once: see ../../monitors/queues.py and stacks.py, which explain why.

   A value is given by the calls and returns of its put and its take, in columns; one that stays is taken at the end of
   time. The answer is an order of the caller's numbers of puts, takes and removals that found nothing, or the values
   that have none. */

#define STAYS (-1) /* the take of a value that was not taken */

typedef struct {
    Arena *arena;
    int32_t count;
    const int64_t *put_call, *put_return, *take_call, *take_return;
    const int32_t *put, *take;
    int32_t empties;
    const int64_t *empty_moment, *empty_call;
    const int32_t *empty;
} Container;

static int32_t *in_order_of(const int64_t *key, int32_t count, Arena *arena) {
    int32_t *items = TAKE(arena, int32_t, count + 1);
    for (int32_t i = 0; i < count; i++) items[i] = i;
    sort_by(key, items, count, arena);
    return items;
}

/* -- queues -------------------------------------------------------------------------------------------------------- */

/* Two values of which the first certainly came in before the second, and certainly left after it. */
static int is_overtaken(const Container *c, int32_t *pair) {
    const int32_t *by_call = in_order_of(c->put_call, c->count, c->arena);
    const int32_t *by_return = in_order_of(c->put_return, c->count, c->arena);
    int32_t last = NONE, position = 0;
    for (int32_t k = 0; k < c->count; k++) {
        int32_t i = by_call[k];
        for (; c->put_return[by_return[position]] < c->put_call[i]; position++)
            if (last == NONE || c->take_call[by_return[position]] > c->take_call[last]) last = by_return[position];
        if (last != NONE && c->take_return[i] < c->take_call[last]) {
            pair[0] = last;
            pair[1] = i;
            return 1;
        }
    }
    return 0;
}

/* The values of one part which nothing else must precede, by one of their two intervals. */
typedef struct {
    const int64_t *call, *return_;
    const int32_t *by_call, *by_return; /* the values of the part */
    int32_t count, next, first;
} Front;

/* Put values that have become free by both intervals on the stack `ready`. */
static int32_t release(Front *f, const uint8_t *placed, uint8_t *waits, int32_t *ready, int32_t count) {
    while (f->first < f->count && placed[f->by_return[f->first]]) f->first++;
    if (f->first == f->count) return count;
    int64_t earliest = f->return_[f->by_return[f->first]];
    for (; f->next < f->count && f->call[f->by_call[f->next]] <= earliest; f->next++)
        if (!--waits[f->by_call[f->next]]) ready[count++] = f->by_call[f->next];
    return count;
}

typedef struct {
    int32_t *by_put_call, *by_put_return, *by_take_call, *by_take_return;
    uint8_t *placed, *waits;
    int32_t *ready, *served, *items;
    int64_t *at;
} QueueWork;

/* Write down puts and takes of `count` values in an order in which they may both come and leave, each as early as
   possible; a put goes before a take. The order of the values is that in which they became free. */
static int32_t write_part(const Container *c, QueueWork *w, int32_t begin, int32_t count, int64_t not_before, int32_t *order) {
    Front puts = {c->put_call, c->put_return, w->by_put_call + begin, w->by_put_return + begin, count, 0, 0};
    Front takes = {c->take_call, c->take_return, w->by_take_call + begin, w->by_take_return + begin, count, 0, 0};
    int32_t ready = 0, items = 0, written = 0;
    int64_t put_at = not_before, take_at = not_before;
    for (int32_t k = 0; k < count; k++) {
        ready = release(&puts, w->placed, w->waits, w->ready, ready);
        ready = release(&takes, w->placed, w->waits, w->ready, ready);
        int32_t i = w->ready[--ready];
        w->placed[i] = 1;
        w->served[k] = i;
        if (c->put_call[i] > put_at) put_at = c->put_call[i];
        if (put_at > take_at) take_at = put_at;
        if (c->take_call[i] > take_at) take_at = c->take_call[i];
        w->at[2 * k] = put_at;
        w->at[2 * k + 1] = take_at;
    }
    /* Stable sorting by moment keeps the order of values; puts stand before takes in the beginning. */
    for (int32_t k = 0; k < count; k++) w->items[items++] = 2 * k;
    for (int32_t k = 0; k < count; k++)
        if (c->take[w->served[k]] != STAYS) w->items[items++] = 2 * k + 1;
    sort_by(w->at, w->items, items, c->arena);
    for (int32_t k = 0; k < items; k++) {
        int32_t i = w->served[w->items[k] >> 1];
        order[written++] = w->items[k] & 1 ? c->take[i] : c->put[i];
    }
    return written;
}

/* The values of each part together, in the order that they had. */
static int32_t *by_part(const Container *c, const int64_t *key, const int64_t *part) {
    int32_t *items = in_order_of(key, c->count, c->arena);
    sort_by(part, items, c->count, c->arena);
    return items;
}

/* The values that are gone before each moment of emptiness, then who found it so, and so on. */
static int32_t write_queue(const Container *c, int32_t *order) {
    Arena *arena = c->arena;
    int32_t *empties = in_order_of(c->empty_call, c->empties, arena), cuts = 0, written = 0;
    sort_by(c->empty_moment, empties, c->empties, arena);
    int64_t *cut = TAKE(arena, int64_t, c->empties + 1), *part = TAKE(arena, int64_t, c->count + 1);
    for (int32_t k = 0; k < c->empties; k++)
        if (!cuts || cut[cuts - 1] != c->empty_moment[empties[k]]) cut[cuts++] = c->empty_moment[empties[k]];
    int32_t *size = TAKE_ZEROED(arena, int32_t, cuts + 2);
    for (int32_t i = 0; i < c->count; i++) {
        int32_t low = 0, high = cuts;
        while (low < high) {
            int32_t middle = (low + high) / 2;
            if (cut[middle] < c->take_call[i]) low = middle + 1;
            else high = middle;
        }
        part[i] = low;
        size[low]++;
    }
    QueueWork w = {
        by_part(c, c->put_call, part), by_part(c, c->put_return, part),
        by_part(c, c->take_call, part), by_part(c, c->take_return, part),
        TAKE_ZEROED(arena, uint8_t, c->count + 1), TAKE(arena, uint8_t, c->count + 1),
        TAKE(arena, int32_t, c->count + 1), TAKE(arena, int32_t, c->count + 1),
        TAKE(arena, int32_t, 2 * (size_t)c->count + 1), TAKE(arena, int64_t, 2 * (size_t)c->count + 1),
    };
    memset(w.waits, 2, (size_t)c->count + 1);
    for (int32_t p = 0, begin = 0, e = 0; p <= cuts; begin += size[p++]) {
        written += write_part(c, &w, begin, size[p], p ? cut[p - 1] : INT64_MIN, order + written);
        for (; p < cuts && e < c->empties && c->empty_moment[empties[e]] == cut[p]; e++) order[written++] = c->empty[empties[e]];
    }
    return written;
}

/* -- stacks -------------------------------------------------------------------------------------------------------- */

/* Numbers by moment, of which the least of any range is known, and to a range of which a number can be added. */
typedef struct {
    int32_t size, *least, *added; /* a power of two; by node, without what was added to the nodes above it */
} Cover;

static void settle(Cover *t, int32_t node) {
    int32_t left = t->least[2 * node], right = t->least[2 * node + 1];
    t->least[node] = (left < right ? left : right) + t->added[node];
}

static void uncover(Cover *t, int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end) {
    if (end <= low || high <= begin) return;
    if (begin <= low && high <= end) {
        t->least[node]--;
        t->added[node]--;
        return;
    }
    int32_t middle = (low + high) / 2;
    uncover(t, 2 * node, low, middle, begin, end);
    uncover(t, 2 * node + 1, middle, high, begin, end);
    settle(t, node);
}

/* The last free moment up to `at`, or the first from `at` on; -1 when there is none. */
static int32_t find_free(const Cover *t, int32_t node, int32_t low, int32_t high, int32_t at, int is_last, int32_t above) {
    if (t->least[node] + above > 0 || (is_last ? low > at : high <= at)) return -1;
    if (high - low == 1) return low;
    int32_t middle = (low + high) / 2, found = -1;
    for (int side = 0; side < 2 && found < 0; side++)
        found = side == is_last ? find_free(t, 2 * node, low, middle, at, is_last, above + t->added[node])
                                : find_free(t, 2 * node + 1, middle, high, at, is_last, above + t->added[node]);
    return found;
}

/* Append the free moments of a range to `found`. */
static int32_t list_free(const Cover *t, int32_t node, int32_t low, int32_t high, int32_t begin, int32_t end, int32_t above, int32_t *found, int32_t count) {
    if (t->least[node] + above > 0 || end <= low || high <= begin) return count;
    if (high - low == 1) {
        found[count] = low;
        return count + 1;
    }
    int32_t middle = (low + high) / 2;
    count = list_free(t, 2 * node, low, middle, begin, end, above + t->added[node], found, count);
    return list_free(t, 2 * node + 1, middle, high, begin, end, above + t->added[node], found, count);
}

/* Intervals by call, of which those that hold a moment are taken out. */
typedef struct {
    int32_t size, *latest; /* a power of two; by node, the latest return; -1 for none */
    const int32_t *begins, *operation;
} Waiting;

static int32_t wake(Waiting *t, int32_t node, int32_t low, int32_t high, int32_t moment, int32_t *woken, int32_t count) {
    if (t->latest[node] < moment || t->begins[low] > moment) return count;
    if (high - low == 1) {
        t->latest[node] = -1;
        woken[count] = t->operation[low];
        return count + 1;
    }
    int32_t middle = (low + high) / 2, *l = t->latest;
    count = wake(t, 2 * node, low, middle, moment, woken, count);
    count = wake(t, 2 * node + 1, middle, high, moment, woken, count);
    l[node] = l[2 * node] > l[2 * node + 1] ? l[2 * node] : l[2 * node + 1];
    return count;
}

typedef struct {
    int32_t nested, *value; /* values with a time inside, as numbers of the caller's */
    int32_t moments;
    int64_t *time;          /* by moment */
    int32_t *at;            /* by nested value four moments: call and return of the put, and of the take */
    Cover cover;
    Waiting waiting;
    uint8_t *has_free;      /* by nested value: how many of its operations have a free moment; 3: peeled */
    int32_t *freed, *woken, *todo;
} Peeling;

static int32_t power_of_two(int32_t least) {
    int32_t size = 1;
    while (size < least) size *= 2;
    return size;
}

/* Number the moments at which something begins or ends, in order. */
static void number_moments(const Container *c, Peeling *p) {
    Arena *arena = c->arena;
    int32_t count = 4 * p->nested;
    int64_t *time = TAKE(arena, int64_t, count + 1);
    for (int32_t k = 0; k < p->nested; k++) {
        int32_t i = p->value[k];
        time[4 * k] = c->put_call[i];
        time[4 * k + 1] = c->put_return[i];
        time[4 * k + 2] = c->take_call[i];
        time[4 * k + 3] = c->take_return[i];
    }
    int32_t *sorted = in_order_of(time, count, arena);
    p->time = TAKE(arena, int64_t, count + 1);
    p->at = TAKE(arena, int32_t, count + 1);
    for (int32_t k = 0; k < count; k++) {
        if (!p->moments || p->time[p->moments - 1] != time[sorted[k]]) p->time[p->moments++] = time[sorted[k]];
        p->at[sorted[k]] = p->moments - 1;
    }
}

/* How many values are certainly on the stack at each moment. */
static void cover_moments(Peeling *p, Arena *arena) {
    Cover *t = &p->cover;
    t->size = power_of_two(p->moments + 1);
    t->least = TAKE_ZEROED(arena, int32_t, 2 * (size_t)t->size);
    t->added = TAKE_ZEROED(arena, int32_t, 2 * (size_t)t->size);
    int32_t *leaf = t->least + t->size;
    for (int32_t k = 0; k < p->nested; k++) {
        leaf[p->at[4 * k + 1] + 1]++;
        leaf[p->at[4 * k + 2]]--;
    }
    for (int32_t m = 1; m < p->moments; m++) leaf[m] += leaf[m - 1];
    for (int32_t m = p->moments; m < t->size; m++) leaf[m] = 1; /* never free */
    for (int32_t node = t->size - 1; node > 0; node--) settle(t, node);
}

static void wait_for_moments(Peeling *p, Arena *arena) {
    Waiting *t = &p->waiting;
    int32_t count = 2 * p->nested;
    int64_t *call = TAKE(arena, int64_t, count + 1);
    for (int32_t o = 0; o < count; o++) call[o] = p->at[2 * o];
    int32_t *operation = in_order_of(call, count, arena);
    t->size = power_of_two(count + 1);
    int32_t *begins = TAKE(arena, int32_t, t->size);
    t->latest = TAKE(arena, int32_t, 2 * (size_t)t->size);
    memset(t->latest, 0xff, 2 * (size_t)t->size * sizeof *t->latest);
    for (int32_t k = 0; k < t->size; k++) begins[k] = k < count ? p->at[2 * operation[k]] : INT32_MAX;
    for (int32_t k = 0; k < count; k++) t->latest[t->size + k] = p->at[2 * operation[k] + 1];
    for (int32_t node = t->size - 1; node > 0; node--) {
        int32_t left = t->latest[2 * node], right = t->latest[2 * node + 1];
        t->latest[node] = left > right ? left : right;
    }
    t->begins = begins;
    t->operation = operation;
}

/* Peel values as long as one can be: it needs a free moment in its put and one in its take. Every moment becomes free
   once, and every operation is woken once, so that all of it takes n log n. */
static int32_t peel(Peeling *p, int32_t *peeled, int32_t *moment) {
    int32_t count = 0, todo = 0, size = p->cover.size;
    int32_t freed = list_free(&p->cover, 1, 0, size, 0, p->moments, 0, p->freed, 0);
    for (;;) {
        for (int32_t f = 0; f < freed; f++) {
            int32_t woken = wake(&p->waiting, 1, 0, p->waiting.size, p->freed[f], p->woken, 0);
            for (int32_t k = 0; k < woken; k++)
                if (++p->has_free[p->woken[k] >> 1] == 2) p->todo[todo++] = p->woken[k] >> 1;
        }
        if (!todo) return count;
        int32_t value = p->todo[--todo];
        const int32_t *at = p->at + 4 * value;
        moment[2 * count] = find_free(&p->cover, 1, 0, size, at[1], 1, 0);
        moment[2 * count + 1] = find_free(&p->cover, 1, 0, size, at[2], 0, 0);
        peeled[count++] = value;
        p->has_free[value] = 3;
        uncover(&p->cover, 1, 0, size, at[1] + 1, at[2]);
        freed = list_free(&p->cover, 1, 0, size, at[1] + 1, at[2], 0, p->freed, 0);
    }
}

typedef struct {
    int32_t count;
    int64_t *moment, *tie, *call;
    int32_t *position;
} Cuts;

static void cut_in(Cuts *cuts, int64_t moment, int64_t tie, int64_t call, int32_t position) {
    if (position == STAYS) return;
    cuts->moment[cuts->count] = moment;
    cuts->tie[cuts->count] = tie;
    cuts->call[cuts->count] = call;
    cuts->position[cuts->count++] = position;
}

/* At the same moment takes come before puts; of what was peeled later, takes come first and puts last. */
static int32_t write_stack(const Container *c, const Peeling *p, const int32_t *peeled, const int32_t *moment, int32_t *order) {
    Arena *arena = c->arena;
    size_t room = 2 * (size_t)c->count + (size_t)c->empties + 1;
    Cuts cuts = {0, TAKE(arena, int64_t, room), TAKE(arena, int64_t, room), TAKE(arena, int64_t, room), TAKE(arena, int32_t, room)};
    int64_t tie = 0;
    for (int32_t k = 0; k < p->nested; k++) {
        int32_t i = p->value[peeled[k]];
        tie++;
        cut_in(&cuts, p->time[moment[2 * k]], tie, 0, c->put[i]);
        cut_in(&cuts, p->time[moment[2 * k + 1]], -tie, 0, c->take[i]);
    }
    for (int32_t i = 0; i < c->count; i++) {
        if (c->put_return[i] < c->take_call[i]) continue;
        int64_t at = c->put_call[i] > c->take_call[i] ? c->put_call[i] : c->take_call[i];
        tie += 2;
        cut_in(&cuts, at, tie, 0, c->put[i]);
        cut_in(&cuts, at, tie + 1, 0, c->take[i]);
    }
    for (int32_t e = 0; e < c->empties; e++) cut_in(&cuts, c->empty_moment[e], 0, c->empty_call[e], c->empty[e]);
    int32_t *sorted = in_order_of(cuts.call, cuts.count, arena);
    sort_by(cuts.tie, sorted, cuts.count, arena);
    sort_by(cuts.moment, sorted, cuts.count, arena);
    for (int32_t k = 0; k < cuts.count; k++) order[k] = cuts.position[sorted[k]];
    return cuts.count;
}

static int32_t check_stack(const Container *c, int32_t *order, int32_t *stuck) {
    Arena *arena = c->arena;
    Peeling p;
    memset(&p, 0, sizeof p);
    p.value = TAKE(arena, int32_t, c->count + 1);
    /* A value that can come out at the moment it goes in is on the stack at no moment that another one needs. */
    for (int32_t i = 0; i < c->count; i++)
        if (c->put_return[i] < c->take_call[i]) p.value[p.nested++] = i;
    number_moments(c, &p);
    cover_moments(&p, arena);
    wait_for_moments(&p, arena);
    p.has_free = TAKE_ZEROED(arena, uint8_t, p.nested + 1);
    p.freed = TAKE(arena, int32_t, p.moments + 1);
    p.woken = TAKE(arena, int32_t, 2 * (size_t)p.nested + 1);
    p.todo = TAKE(arena, int32_t, p.nested + 1);
    int32_t *peeled = TAKE(arena, int32_t, p.nested + 1), *moment = TAKE(arena, int32_t, 2 * (size_t)p.nested + 1);
    int32_t count = peel(&p, peeled, moment);
    if (count == p.nested) return write_stack(c, &p, peeled, moment, order);
    count = 0;
    for (int32_t k = 0; k < p.nested; k++)
        if (p.has_free[k] != 3) stuck[count++] = p.value[k];
    return -count;
}

/* -- the call ------------------------------------------------------------------------------------------------------ */

int32_t faultline_container(
    int32_t is_stack, int32_t count, const int64_t *put_call, const int64_t *put_return, const int64_t *take_call,
    const int64_t *take_return, const int32_t *put, const int32_t *take, int32_t empties, const int64_t *empty_moment,
    const int64_t *empty_call, const int32_t *empty, int32_t *order, int32_t *illegal) {
    Arena *arena = calloc(1, sizeof *arena);
    if (!arena) return INT32_MIN;
    Container c = {
        arena, count, put_call, put_return, take_call, take_return, put, take, empties, empty_moment, empty_call, empty,
    };
    volatile int32_t length = INT32_MIN;
    if (!setjmp(arena->out_of_memory)) {
        if (is_stack) length = check_stack(&c, order, illegal);
        else length = is_overtaken(&c, illegal) ? -2 : write_queue(&c, order);
    }
    arena_close(arena);
    free(arena);
    return length;
}
