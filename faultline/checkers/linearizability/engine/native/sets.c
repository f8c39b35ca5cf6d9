/* Sets of small numbers as bits, each kept once and named by a number, so that equal sets have equal names. */

typedef struct {
    size_t words, count; /* words of a set; sets so far */
    uint64_t *bits;      /* `words` of each set */
    size_t room, table_size;
    int32_t *table;      /* open addressing: names of sets */
} Sets;

static void *grown(Arena *arena, void *items, size_t count, size_t size) {
    void *moved = realloc(items, count * size);
    if (!moved) longjmp(arena->out_of_memory, 1);
    return moved;
}

static const uint64_t *set_bits(const Sets *sets, int32_t name) { return sets->bits + (size_t)name * sets->words; }

static size_t place_of_set(const Sets *sets, const uint64_t *bits) {
    uint64_t h = 0;
    for (size_t w = 0; w < sets->words; w++) h = mix(h ^ bits[w]);
    return (size_t)h & (sets->table_size - 1);
}

static void grow_sets(Sets *sets, Arena *arena) {
    size_t size = sets->table_size ? 2 * sets->table_size : 256;
    sets->table = grown(arena, sets->table, size, sizeof *sets->table);
    sets->table_size = size;
    memset(sets->table, 0xff, size * sizeof *sets->table);
    for (size_t name = 0; name < sets->count; name++) {
        size_t k = place_of_set(sets, set_bits(sets, (int32_t)name));
        while (sets->table[k] >= 0) k = (k + 1) & (size - 1);
        sets->table[k] = (int32_t)name;
    }
}

/* The name of the set `bits`; a new one when it was not seen before. */
static int32_t name_of(Sets *sets, const uint64_t *bits, Arena *arena) {
    if (2 * (sets->count + 1) > sets->table_size) grow_sets(sets, arena);
    size_t k = place_of_set(sets, bits), bytes = sets->words * sizeof *bits;
    for (; sets->table[k] >= 0; k = (k + 1) & (sets->table_size - 1))
        if (!memcmp(set_bits(sets, sets->table[k]), bits, bytes)) return sets->table[k];
    if (sets->count == sets->room) {
        size_t room = sets->room ? 2 * sets->room : 64;
        sets->bits = grown(arena, sets->bits, room * sets->words, sizeof *sets->bits);
        sets->room = room;
    }
    memcpy(sets->bits + sets->count * sets->words, bits, bytes);
    sets->table[k] = (int32_t)sets->count;
    return (int32_t)sets->count++;
}

static int is_subset(const Sets *sets, int32_t less, int32_t more) {
    if (less == more) return 1;
    const uint64_t *a = set_bits(sets, less), *b = set_bits(sets, more);
    for (size_t w = 0; w < sets->words; w++)
        if (a[w] & ~b[w]) return 0;
    return 1;
}

static void free_sets(Sets *sets) {
    free(sets->bits);
    free(sets->table);
}

static int has_bit(const uint64_t *bits, int32_t at) { return bits[at >> 6] >> (at & 63) & 1; }

static void set_bit(uint64_t *bits, int32_t at) { bits[at >> 6] |= (uint64_t)1 << (at & 63); }

static void clear_bit(uint64_t *bits, int32_t at) { bits[at >> 6] &= ~((uint64_t)1 << (at & 63)); }
