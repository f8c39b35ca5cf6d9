/* The chained-zones monitor (Gibbons & Korach 1997, with chains of compare-and-sets): see ../zones.py, which this
   follows line by line. Answers LEGAL with an order, ILLEGAL with a certificate, UNKNOWN when it does not apply. */

typedef struct {
    int32_t *writer;     /* by value: the operation that writes it, or NONE */
    int32_t *next;       /* by value: the compare-and-set that replaces it, or NONE */
    int32_t *seer;       /* by value: an operation that certainly saw it, or NONE */
    int32_t *first_return, *first_returning, *last_call, *last_called; /* by value: of its cluster */
    int32_t *reader, *last_reader; /* by value: its observers, linked through next_reader in order of call */
    int32_t *next_reader;          /* by operation */
} Clusters;

static void certify(int32_t *certificate, int32_t a, int32_t b, int32_t c, int32_t d) {
    int32_t given[4] = {a, b, c, d}, count = 0;
    for (int32_t i = 0; i < 4; i++) certificate[i] = NONE;
    for (int32_t i = 0; i < 4; i++) {
        int is_new = given[i] != NONE;
        for (int32_t j = 0; j < count; j++) is_new &= certificate[j] != given[i];
        if (is_new) certificate[count++] = given[i];
    }
}

static void find_writers(const Problem *p, Clusters *c) {
    for (int32_t v = 0; v < p->values; v++) c->writer[v] = c->next[v] = NONE;
    for (int32_t i = 0; i < p->size; i++)
        if (p->kind[i] >= WRITE) c->writer[p->produce[i]] = i;
}

/* A pending operation happened if its value was seen; a pending compare-and-set that happened saw a value itself. */
static void find_seers(const Problem *p, Clusters *c) {
    memset(c->seer, 0xff, (size_t)p->values * sizeof *c->seer);
    for (int32_t i = 0; i < p->size; i++) {
        if ((p->kind[i] != OBSERVE && p->kind[i] != SWAP) || p->return_at[i] == NEVER) continue;
        int32_t v = p->demand[i], seer = i;
        while (c->seer[v] == NONE) {
            c->seer[v] = seer;
            seer = c->writer[v];
            if (seer == NONE || p->return_at[seer] != NEVER || p->kind[seer] != SWAP) break;
            v = p->demand[seer];
        }
    }
}

static int happened(const Problem *p, const Clusters *c, int32_t i) {
    return p->return_at[i] != NEVER || c->seer[p->produce[i]] != NONE;
}

/* Gather the clusters; 0 with a certificate when a value was never put, seen too early, or replaced twice. */
static int gather(const Problem *p, Clusters *c, int32_t *certificate) {
    for (int32_t v = 0; v < p->values; v++) {
        c->first_return[v] = NEVER;
        c->last_call[v] = -1;
        c->first_returning[v] = c->last_called[v] = c->reader[v] = c->last_reader[v] = NONE;
    }
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k], kind = p->kind[i];
        if (kind == AVOID || (kind >= WRITE && !happened(p, c, i))) continue;
        int32_t v = kind == OBSERVE ? p->demand[i] : p->produce[i];
        if (kind == OBSERVE || kind == SWAP) {
            int32_t seen = p->demand[i], writer = c->writer[seen];
            if (seen != INITIAL && (writer == NONE || p->return_at[i] < p->call_at[writer])) {
                certify(certificate, i, writer, NONE, NONE);
                return 0;
            }
            if (kind == SWAP) {
                if (c->next[seen] != NONE) {
                    certify(certificate, i, c->next[seen], writer, NONE);
                    return 0;
                }
                c->next[seen] = i;
            }
        }
        if (p->return_at[i] < c->first_return[v]) {
            c->first_return[v] = p->return_at[i];
            c->first_returning[v] = i;
        }
        c->last_call[v] = p->call_at[i];
        c->last_called[v] = i;
        if (kind == OBSERVE) {
            if (c->reader[v] == NONE) c->reader[v] = i;
            else c->next_reader[c->last_reader[v]] = i;
            c->last_reader[v] = i;
            c->next_reader[i] = NONE;
        }
    }
    return 1;
}

typedef struct {
    int32_t value;                   /* the first of its chain */
    int32_t first_return, last_call; /* of the whole chain */
    int32_t first_returning, last_called;
} Zone;

/* Follow the chain that begins with zone->value; 0 with a certificate when it cannot stand in one piece. */
static int follow(const Problem *p, const Clusters *c, Zone *zone, int32_t *visited, int32_t *certificate) {
    int32_t v = zone->value;
    zone->first_return = v == INITIAL ? -1 : c->first_return[v];
    zone->first_returning = c->first_returning[v];
    zone->last_call = c->last_call[v];
    zone->last_called = c->last_called[v];
    ++*visited;
    while (c->next[v] != NONE) {
        v = p->produce[c->next[v]];
        ++*visited;
        if (c->first_return[v] < zone->last_call) {
            certify(certificate, c->first_returning[v], zone->last_called, NONE, NONE);
            return 0;
        }
        if (c->first_return[v] < zone->first_return) {
            zone->first_return = c->first_return[v];
            zone->first_returning = c->first_returning[v];
        }
        if (c->last_call[v] > zone->last_call) {
            zone->last_call = c->last_call[v];
            zone->last_called = c->last_called[v];
        }
    }
    return 1;
}

/* All chains as zones, in the order in which they can stand; a negative number with a certificate when they cannot. */
static int32_t line_up(const Problem *p, const Clusters *c, Zone *zones, int32_t *certificate) {
    int32_t count = 0, visited = 0, present = 0;
    int32_t *at = TAKE(p->arena, int32_t, 2 * (size_t)p->size + 2);
    memset(at, 0xff, (2 * (size_t)p->size + 2) * sizeof *at);
    for (int32_t v = 0; v < p->values; v++) {
        int32_t writer = c->writer[v];
        if (v != INITIAL && (writer == NONE || !happened(p, c, writer))) continue;
        present++;
        if (v != INITIAL && p->kind[writer] == SWAP) continue;
        zones[count].value = v;
        if (!follow(p, c, &zones[count], &visited, certificate)) return -1;
        int32_t key = zones[count].first_return < zones[count].last_call ? zones[count].first_return : zones[count].last_call;
        at[key + 1] = count++;
    }
    if (visited < present) {
        int32_t v = INITIAL;
        uint8_t *seen = TAKE_ZEROED(p->arena, uint8_t, p->values);
        for (int32_t z = 0; z < count; z++)
            for (v = zones[z].value;; v = p->produce[c->next[v]]) {
                seen[v] = 1;
                if (c->next[v] == NONE) break;
            }
        for (v = 0; seen[v] || (v != INITIAL && (c->writer[v] == NONE || !happened(p, c, c->writer[v]))); v++) {}
        int32_t first = c->writer[v], second = c->next[v];
        certify(certificate, first, second, c->next[p->produce[second]], NONE);
        return -1;
    }
    Zone *sorted = zones + count;
    const Zone *forward = NULL; /* the latest one so far that must hold the register from first_return to last_call */
    int32_t placed = 0;
    for (int32_t k = 0; k < 2 * p->size + 2; k++) {
        if (at[k] < 0) continue;
        const Zone *zone = &zones[at[k]];
        if (forward && zone->first_return < forward->last_call) {
            certify(certificate, zone->first_returning, zone->last_called, forward->first_returning, forward->last_called);
            return -1;
        }
        sorted[placed++] = *zone;
        if (zone->first_return < zone->last_call) forward = &sorted[placed - 1];
    }
    return count;
}

static int32_t write_down(const Problem *p, const Clusters *c, const Zone *zones, int32_t count, int32_t *order) {
    int32_t length = 0;
    for (int32_t z = 0; z < count; z++) {
        int32_t v = zones[z].value;
        if (v != INITIAL) order[length++] = c->writer[v];
        for (;;) {
            for (int32_t i = c->reader[v]; i != NONE; i = c->next_reader[i]) order[length++] = i;
            if (c->next[v] == NONE) break;
            order[length++] = c->next[v];
            v = p->produce[c->next[v]];
        }
    }
    return length;
}

/* Put the failed compare-and-sets into `order`, each at the first place where it fits; 0 when one does not. */
static int place_failed(const Problem *p, int32_t *order, int32_t *length) {
    int32_t events = 2 * p->size + 1, size = *length;
    int32_t *index = TAKE(p->arena, int32_t, p->size), *event = TAKE(p->arena, int32_t, events);
    int32_t *holds = TAKE(p->arena, int32_t, size + 1), *end = TAKE(p->arena, int32_t, size + 1);
    int32_t *latest = TAKE(p->arena, int32_t, p->size), *gap = TAKE(p->arena, int32_t, p->size);
    for (int32_t i = 0; i < p->size; i++) index[i] = gap[i] = -1;
    holds[0] = INITIAL;
    for (int32_t k = 0; k < size; k++) {
        int32_t i = order[k];
        index[i] = k;
        holds[k + 1] = p->kind[i] >= WRITE ? p->produce[i] : holds[k];
    }
    for (int32_t k = size; k >= 0; k--) end[k] = k < size && holds[k + 1] == holds[k] ? end[k + 1] : k;
    memset(event, 0xff, (size_t)events * sizeof *event);
    for (int32_t i = 0; i < p->size; i++) {
        event[p->call_at[i]] = 2 * i;
        if (p->return_at[i] != NEVER) event[p->return_at[i]] = 2 * i + 1;
    }
    int32_t least = size;
    for (int32_t k = events - 1; k >= 0; k--) {
        if (event[k] < 0) continue;
        int32_t i = event[k] >> 1;
        if (event[k] & 1) latest[i] = least;
        else if (index[i] >= 0 && index[i] < least) least = index[i];
    }
    int32_t floor = 0;
    for (int32_t k = 0; k < events; k++) {
        if (event[k] < 0) continue;
        int32_t i = event[k] >> 1, is_return = event[k] & 1;
        if (p->kind[i] != AVOID) {
            if (is_return && index[i] + 1 > floor) floor = index[i] + 1;
        } else if (is_return) {
            if (gap[i] > floor) floor = gap[i];
        } else {
            int32_t place = floor, u = p->demand[i];
            if (place <= size && holds[place] == u) place = end[place] + 1;
            if (place > latest[i] || place > size) return 0;
            gap[i] = place;
        }
    }
    int32_t *first = TAKE(p->arena, int32_t, size + 1), *after = TAKE(p->arena, int32_t, p->size);
    memset(first, 0xff, ((size_t)size + 1) * sizeof *first);
    for (int32_t k = p->size - 1; k >= 0; k--) {
        int32_t i = p->by_call[k];
        if (gap[i] < 0) continue;
        after[i] = first[gap[i]];
        first[gap[i]] = i;
    }
    int32_t *merged = TAKE(p->arena, int32_t, p->size), count = 0;
    for (int32_t k = 0; k <= size; k++) {
        for (int32_t i = first[k]; i != NONE; i = after[i]) merged[count++] = i;
        if (k < size) merged[count++] = order[k];
    }
    memcpy(order, merged, (size_t)count * sizeof *order);
    *length = count;
    return 1;
}

/* Let chains stand in an order: count them, or answer a negative number with a certificate when they cannot. */
static int32_t stand(const Problem *p, Clusters *c, Zone **zones, int32_t *certificate) {
    Arena *arena = p->arena;
    c->writer = TAKE(arena, int32_t, p->values);
    c->next = TAKE(arena, int32_t, p->values);
    c->seer = TAKE(arena, int32_t, p->values);
    c->first_return = TAKE(arena, int32_t, p->values);
    c->first_returning = TAKE(arena, int32_t, p->values);
    c->last_call = TAKE(arena, int32_t, p->values);
    c->last_called = TAKE(arena, int32_t, p->values);
    c->reader = TAKE(arena, int32_t, p->values);
    c->last_reader = TAKE(arena, int32_t, p->values);
    c->next_reader = TAKE(arena, int32_t, p->size);
    find_writers(p, c);
    find_seers(p, c);
    if (!gather(p, c, certificate)) return -1;
    *zones = TAKE(arena, Zone, 2 * (size_t)p->values);
    return line_up(p, c, *zones, certificate);
}
