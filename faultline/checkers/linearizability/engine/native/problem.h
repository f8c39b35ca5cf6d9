/* One key's operations, ready for the monitor and the search: values are dense, times are positions in one order. */

#ifndef FAULTLINE_PROBLEM_H
#define FAULTLINE_PROBLEM_H

#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { OBSERVE, AVOID, WRITE, SWAP, APPEND };
enum { LEGAL, ILLEGAL, UNKNOWN };
enum { BY_ZONES = 1, BY_SEARCH = 2 };

#define INITIAL 0       /* the local number of the value at the beginning */
#define DEAD (-1)       /* a value that no operation will look at any more */
#define NONE (-1)       /* no operation, no group */
#define NEVER INT32_MAX /* the position of a return that does not come */

/* Memory that is given back all at once, when the next key is taken up. */
typedef struct Block {
    struct Block *before;
    size_t size, used;
} Block;

typedef struct {
    Block *last;
    jmp_buf out_of_memory;
} Arena;

static void *arena_take(Arena *arena, size_t count, size_t size) {
    size_t bytes = (count * size + 15) & ~(size_t)15;
    if (!arena->last || arena->last->size - arena->last->used < bytes) {
        size_t room = arena->last ? 2 * arena->last->size : (size_t)1 << 16;
        if (room < bytes) room = bytes;
        Block *block = malloc(sizeof(Block) + 16 + room);
        if (!block) longjmp(arena->out_of_memory, 1);
        block->before = arena->last;
        block->size = room;
        block->used = 0;
        arena->last = block;
    }
    char *start = (char *)(((uintptr_t)(arena->last + 1) + 15) & ~(uintptr_t)15);
    void *taken = start + arena->last->used;
    arena->last->used += bytes;
    return taken;
}

static void *arena_take_zeroed(Arena *arena, size_t count, size_t size) {
    return memset(arena_take(arena, count, size), 0, count * size);
}

static void arena_free_before(Arena *arena, Block *block) {
    (void)arena;
    while (block) {
        Block *before = block->before;
        free(block);
        block = before;
    }
}

static void arena_reset(Arena *arena) {
    if (!arena->last) return;
    arena_free_before(arena, arena->last->before);
    arena->last->before = NULL;
    arena->last->used = 0;
}

static void arena_close(Arena *arena) {
    arena_free_before(arena, arena->last);
    arena->last = NULL;
}

#define TAKE(arena, type, count) ((type *)arena_take(arena, (size_t)(count), sizeof(type)))
#define TAKE_ZEROED(arena, type, count) ((type *)arena_take_zeroed(arena, (size_t)(count), sizeof(type)))

typedef struct {
    Arena *arena;
    int32_t size;      /* operations */
    int32_t completed; /* those of them that returned */
    int32_t values;    /* dense numbers 0 .. values - 1 */
    int32_t failed;    /* operations of kind AVOID */
    int32_t appends;   /* operations of kind APPEND */
    int32_t *operation;         /* number in the caller's columns */
    uint8_t *kind;
    int32_t *demand, *produce;  /* produce of an APPEND: its first edge in edge_* ; demand: one past its last */
    int64_t *call, *return_;    /* the caller's times, return_ < 0 when pending */
    int32_t *call_at, *return_at; /* positions in the one order of all calls and returns */
    int32_t *by_call, *by_return;
    int32_t edges;
    int32_t *edge_from, *edge_to, *edges_by_length;
} Problem;

/* -- sorting -------------------------------------------------------------------------------------------------- */

#define DIGIT_BITS 11

/* Sort `items` by `key[item]`, stably: by insertion when there are few, else digit by digit from the lowest. */
static void sort_by(const int64_t *key, int32_t *items, int32_t count, Arena *arena) {
    if (count < 48) {
        for (int32_t i = 1; i < count; i++) {
            int32_t item = items[i], j = i;
            for (; j > 0 && key[items[j - 1]] > key[item]; j--) items[j] = items[j - 1];
            items[j] = item;
        }
        return;
    }
    int64_t least = key[items[0]], most = least;
    int is_sorted = 1;
    for (int32_t i = 1; i < count; i++) {
        int64_t k = key[items[i]];
        is_sorted &= k >= key[items[i - 1]];
        if (k < least) least = k;
        if (k > most) most = k;
    }
    if (is_sorted) return;
    int32_t *from = items, *to = TAKE(arena, int32_t, count);
    uint64_t range = (uint64_t)most - (uint64_t)least;
    for (int shift = 0; shift < 64 && range >> shift; shift += DIGIT_BITS) {
        int32_t start[(1 << DIGIT_BITS) + 1] = {0};
#define DIGIT(item) ((((uint64_t)key[item] - (uint64_t)least) >> shift) & ((1 << DIGIT_BITS) - 1))
        for (int32_t i = 0; i < count; i++) start[DIGIT(from[i]) + 1]++;
        for (int32_t d = 0; d < 1 << DIGIT_BITS; d++) start[d + 1] += start[d];
        for (int32_t i = 0; i < count; i++) to[start[DIGIT(from[i])]++] = from[i];
#undef DIGIT
        int32_t *swapped = from;
        from = to;
        to = swapped;
    }
    if (from != items) memcpy(items, from, (size_t)count * sizeof *items);
}

/* Put all calls and returns into one order; at equal times calls come first, so that such operations are concurrent. */
static void order_events(Problem *p) {
    p->by_call = TAKE(p->arena, int32_t, p->size);
    p->by_return = TAKE(p->arena, int32_t, p->size);
    p->call_at = TAKE(p->arena, int32_t, p->size);
    p->return_at = TAKE(p->arena, int32_t, p->size);
    p->completed = 0;
    for (int32_t i = 0; i < p->size; i++) {
        p->by_call[i] = i;
        p->return_at[i] = NEVER;
        if (p->return_[i] >= 0) p->by_return[p->completed++] = i;
    }
    sort_by(p->call, p->by_call, p->size, p->arena);
    sort_by(p->return_, p->by_return, p->completed, p->arena);
    int32_t position = 0, c = 0;
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t returning = p->by_return[r];
        while (c < p->size && p->call[p->by_call[c]] <= p->return_[returning]) p->call_at[p->by_call[c++]] = position++;
        p->return_at[returning] = position++;
    }
    while (c < p->size) p->call_at[p->by_call[c++]] = position++;
}

/* Where appending leads from `state`. */
static int32_t appended(const Problem *p, int32_t operation, int32_t state) {
    for (int32_t e = p->produce[operation]; e < p->demand[operation]; e++)
        if (p->edge_from[e] == state) return p->edge_to[e];
    return DEAD;
}

#endif
