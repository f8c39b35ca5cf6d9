/* Replaying a linearization: the proof behind every "linearizable", sharing no idea with the search that proposed it.

   One walk over the order: is each operation legal where it stands, is every completed one there and none twice, and
   does none stand behind one that began only after it had ended? */

static int is_linearization(const Problem *p, const int32_t *order, int32_t length) {
    uint8_t *placed = TAKE_ZEROED(p->arena, uint8_t, p->size);
    int64_t latest_call = INT64_MIN;
    int32_t state = INITIAL, returned = 0;
    for (int32_t i = 0; i < length; i++) {
        int32_t operation = order[i];
        if (placed[operation]++) return 0;
        if (p->call[operation] > latest_call) latest_call = p->call[operation];
        if (p->return_[operation] >= 0) {
            returned++;
            if (p->return_[operation] < latest_call) return 0;
        }
        switch (p->kind[operation]) {
        case OBSERVE:
            if (state != p->demand[operation]) return 0;
            break;
        case AVOID:
            if (state == p->demand[operation]) return 0;
            break;
        case SWAP:
            if (state != p->demand[operation]) return 0;
            state = p->produce[operation];
            break;
        case WRITE:
            state = p->produce[operation];
            break;
        default:
            state = appended(p, operation, state);
        }
    }
    return returned == p->completed;
}
