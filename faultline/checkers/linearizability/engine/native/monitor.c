/* The monitor of registers: zones where each value is put once, and where values repeat a mapping of reads to writes,
   of which the zones then judge what is sure and what was assigned. See ../monitor.py, which this follows. */

#define OFTEN 4

typedef struct {
    Clusters clusters;
    Zone *zones;
    int32_t count;
} Lineup;

/* Let the zones of m->q stand in order; ILLEGAL with a core when they cannot. */
static int line_up_all(Mapping *m, Lineup *l) {
    int32_t certificate[4];
    l->count = stand(&m->q, &l->clusters, &l->zones, certificate);
    if (l->count >= 0) return LEGAL;
    for (int32_t k = 0; k < 4; k++) name_in_chain(m, &l->clusters, certificate[k]);
    return ILLEGAL;
}

/* Map the reads of a register on which values repeat, and line up its zones. */
static int line_up_mapped(Mapping *m, Lineup *l) {
    int verdict = map_reads(m);
    if (verdict == LEGAL) verdict = line_up_all(m, l);
    if (verdict != LEGAL || !m->unsure_count) return verdict;
    verdict = assign_all(m, &l->clusters, l->zones, l->count);
    /* The search for an assignment looks at less than the zones do: if these refuse it, another one may do. */
    if (verdict == LEGAL && line_up_all(m, l) != LEGAL) verdict = UNKNOWN;
    return verdict;
}

/* Whether values are put so often that few reads can be mapped: then a search of a few steps is likelier to decide. */
static int repeats_often(const Problem *p) {
    int32_t writes = 0;
    for (int32_t i = 0; i < p->size; i++) writes += p->kind[i] >= WRITE;
    return writes > OFTEN * p->values;
}

/* Judge a register. `order` takes the linearization, or the operations that contradict each other. */
static int check_zones(const Problem *p, int32_t *order, int32_t *length) {
    if (p->appends) return UNKNOWN;
    Mapping m = {.p = p, .q = *p, .is_named = TAKE_ZEROED(p->arena, uint8_t, p->size), .core = order};
    Lineup l;
    int verdict = number_writes(&m) ? line_up_mapped(&m, &l) : line_up_all(&m, &l);
    if (verdict == ILLEGAL) *length = m.core_size;
    if (verdict != LEGAL) return verdict;
    *length = write_down(&m.q, &l.clusters, l.zones + l.count, l.count, order);
    return p->failed && !place_failed(p, order, length) ? UNKNOWN : LEGAL;
}
