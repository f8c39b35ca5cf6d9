/* The generic search: see ../../generic_walk.py, which is the same in plain Python and explains the rules.

   The model is Python code, so the search is a coroutine: `faultline_generic_run` walks until it needs a step of the
   model that was not asked for before, leaves the question in `request`, and goes on when it is called with the
   answers there. All else - configurations, what was visited, backtracking, the check of what was visited - are
   integers here. */

enum { ENTERING, OBSERVING, HOPING, CHOOSING, CHECKING, FINISHED };       /* where the walk goes on */
enum { DONE, ASKS_STEPS, ASKS_HOPE, OUT_OF_MEMORY };                      /* what `run` returns */
enum { AT_VERDICT, AT_FURTHEST, AT_REFUTED, AT_STEPS, AT_LENGTH, AT_PROVED, AT_CONFIGURATIONS }; /* in `answer` */

#define NO_STEP (-1)   /* the operation is illegal in the state */
#define UNASKED (-2)   /* the model was not asked yet */
#define PASSES_MAX 3   /* with all guesses, with those that held, with none */
#define CHECKS_BETWEEN_CLOCKS 256

typedef struct {
    int32_t rank, ahead, state, used; /* `ahead` and `used` are names of sets */
    int32_t next;                     /* the same but for `used` */
    int32_t is_hopeless;              /* the hook `can_reach` says so: nothing was tried behind it */
} GenericConfiguration;

typedef struct {
    int32_t rank, ahead, state, used, length, choice, is_tried;
} Choice;

typedef struct {
    int32_t class_, begin, end; /* members begin .. end - 1, which are their bits in `used` too */
} PendingGroup;

typedef struct GenericSearch {
    Arena arena;
    Problem p;
    int32_t classes;
    int32_t *class_;          /* by operation */
    int32_t *slot;            /* by completed operation */
    int32_t slots;
    int32_t *opening, *opened_at; /* completed operations in order of call; by rank, how many of them were called */
    int32_t *rank_of;         /* by completed operation */
    int64_t *window_begin;    /* by rank, into `window`: the open operations, in order of return */
    int32_t *window;
    int32_t *members;         /* pending operations, class by class, in order of call */
    PendingGroup *groups;
    int32_t group_count, pending;
    uint8_t *is_told;         /* by class: the hook `readonly` says that it changes nothing */
    uint8_t *is_still;        /* by class: it is told, or guessed, to change nothing */
    uint8_t *was_observed;    /* by class: it was linearized for that reason */
    uint8_t *is_broken;       /* by class: the check found that it is not still */
    int has_look_ahead, is_tainted, passes;
    /* what the model answered */
    uint64_t *asked;          /* state and class; UINT64_MAX for none */
    int32_t *reached;
    size_t step_count, steps_size;
    /* the walk */
    int phase, is_hope_asked;
    int32_t rank, state, used, initial, hope_at;
    uint64_t *ahead, *used_bits, *scratch, *scratch_used;
    int32_t *path, length;
    Choice *choices;
    size_t choice_count, choices_room;
    Sets aheads, useds;
    GenericConfiguration *visited;
    size_t visited_count, visited_room, table_size;
    int32_t *table;
    /* the best so far */
    int32_t furthest, foreseen, best_length, unchanged, *best; /* `unchanged`: how much of it the path begins with */
    int64_t steps, steps_max;
    double deadline_s;
    /* the check */
    size_t checked;
    int32_t *last_mover, *delayed; /* by rank, that of the last operation before it that is not still */
    int is_wrong_guess, is_late;
    /* the caller's */
    int32_t *request;
    int64_t *answer;
} GenericSearch;

/* -- preparation -------------------------------------------------------------------------------------------------- */

static int64_t open_slots(GenericSearch *g) {
    const Problem *p = &g->p;
    Arena *arena = &g->arena;
    int32_t *free_slots = TAKE(arena, int32_t, p->completed + 1), free_count = 0, c = 0;
    int64_t windows = 0;
    g->slot = TAKE(arena, int32_t, p->size + 1);
    g->rank_of = TAKE(arena, int32_t, p->size + 1);
    g->opening = TAKE(arena, int32_t, p->completed + 1);
    g->opened_at = TAKE(arena, int32_t, p->completed + 1);
    for (int32_t k = 0; k < p->size; k++)
        if (p->return_at[p->by_call[k]] != NEVER) g->opening[c++] = p->by_call[k];
    c = 0;
    for (int32_t r = 0; r < p->completed; r++) {
        int32_t returning = p->by_return[r];
        for (; c < p->completed && p->call_at[g->opening[c]] < p->return_at[returning]; c++)
            g->slot[g->opening[c]] = free_count ? free_slots[--free_count] : g->slots++;
        g->opened_at[r] = c;
        windows += c - r;
        g->rank_of[returning] = r;
        free_slots[free_count++] = g->slot[returning];
    }
    return windows;
}

/* The operations open at each return, in order of return: those of the rank before, with the new ones put in place. */
static void open_windows(GenericSearch *g) {
    const Problem *p = &g->p;
    int64_t size = open_slots(g);
    g->window_begin = TAKE(&g->arena, int64_t, p->completed + 1);
    g->window = TAKE(&g->arena, int32_t, size + 1);
    int64_t end = 0, before = 0;
    int32_t c = 0;
    for (int32_t r = 0; r < p->completed; r++) {
        int64_t begin = end;
        g->window_begin[r] = begin;
        for (int64_t k = before + 1; r && k < begin; k++) g->window[end++] = g->window[k];
        for (; c < g->opened_at[r]; c++) {
            int32_t i = g->opening[c];
            int64_t k = end++;
            for (; k > begin && g->rank_of[g->window[k - 1]] > g->rank_of[i]; k--) g->window[k] = g->window[k - 1];
            g->window[k] = i;
        }
        before = begin;
    }
    g->window_begin[p->completed] = end;
}

static void group_pending_by_class(GenericSearch *g) {
    const Problem *p = &g->p;
    Arena *arena = &g->arena;
    int32_t *group_of = TAKE(arena, int32_t, g->classes + 1);
    memset(group_of, 0xff, ((size_t)g->classes + 1) * sizeof *group_of);
    g->pending = p->size - p->completed;
    g->groups = TAKE_ZEROED(arena, PendingGroup, g->pending + 1);
    g->members = TAKE(arena, int32_t, g->pending + 1);
    for (int32_t i = 0; i < p->size; i++) {
        if (p->return_at[i] != NEVER) continue;
        int32_t *group = &group_of[g->class_[i]];
        if (*group < 0) {
            *group = g->group_count++;
            g->groups[*group].class_ = g->class_[i];
        }
        g->groups[*group].end++;
    }
    int32_t begin = 0;
    for (int32_t k = 0; k < g->group_count; k++) {
        begin += g->groups[k].end;
        g->groups[k].begin = g->groups[k].end = begin - g->groups[k].end;
    }
    for (int32_t k = 0; k < p->size; k++) {
        int32_t i = p->by_call[k];
        if (p->return_at[i] == NEVER) g->members[g->groups[group_of[g->class_[i]]].end++] = i;
    }
}

static void prepare_generic(GenericSearch *g) {
    Arena *arena = &g->arena;
    order_events(&g->p);
    open_windows(g);
    group_pending_by_class(g);
    g->aheads.words = (size_t)(g->slots + 63) / 64;
    g->useds.words = (size_t)(g->pending + 63) / 64;
    if (!g->aheads.words) g->aheads.words = 1;
    if (!g->useds.words) g->useds.words = 1;
    g->ahead = TAKE_ZEROED(arena, uint64_t, g->aheads.words);
    g->scratch = TAKE_ZEROED(arena, uint64_t, g->aheads.words);
    g->used_bits = TAKE_ZEROED(arena, uint64_t, g->useds.words);
    g->scratch_used = TAKE_ZEROED(arena, uint64_t, g->useds.words);
    g->path = TAKE(arena, int32_t, g->p.size + 1);
    g->best = TAKE(arena, int32_t, g->p.size + 1);
    g->delayed = TAKE(arena, int32_t, g->p.size + 1);
    g->last_mover = TAKE(arena, int32_t, g->p.completed + 1);
    g->was_observed = TAKE_ZEROED(arena, uint8_t, g->classes + 1);
    g->is_broken = TAKE_ZEROED(arena, uint8_t, g->classes + 1);
    g->is_still = TAKE(arena, uint8_t, g->classes + 1);
    memset(g->is_still, 1, (size_t)g->classes + 1);
}

/* Begin a pass: nothing is visited, and classes that are not `is_still` any more are not observed. */
static void begin_pass(GenericSearch *g) {
    memset(g->ahead, 0, g->aheads.words * sizeof *g->ahead);
    memset(g->used_bits, 0, g->useds.words * sizeof *g->used_bits);
    memset(g->was_observed, 0, (size_t)g->classes + 1);
    memset(g->table, 0xff, g->table_size * sizeof *g->table);
    g->visited_count = g->choice_count = g->checked = 0;
    g->rank = g->length = g->best_length = g->unchanged = g->foreseen = 0;
    g->state = g->initial;
    g->used = name_of(&g->useds, g->used_bits, &g->arena);
    g->furthest = -1;
    g->is_tainted = g->is_wrong_guess = 0;
    g->phase = ENTERING;
    g->passes++;
}

/* -- steps of the model -------------------------------------------------------------------------------------------- */

static uint64_t step_key(int32_t state, int32_t class_) { return (uint64_t)(uint32_t)state << 32 | (uint32_t)class_; }

static int32_t step_of(const GenericSearch *g, int32_t state, int32_t class_) {
    uint64_t key = step_key(state, class_);
    size_t k = (size_t)mix(key) & (g->steps_size - 1);
    for (; g->asked[k] != UINT64_MAX; k = (k + 1) & (g->steps_size - 1))
        if (g->asked[k] == key) return g->reached[k];
    return UNASKED;
}

static void put_step(GenericSearch *g, uint64_t key, int32_t reached) {
    size_t k = (size_t)mix(key) & (g->steps_size - 1);
    while (g->asked[k] != UINT64_MAX && g->asked[k] != key) k = (k + 1) & (g->steps_size - 1);
    g->step_count += g->asked[k] != key;
    g->asked[k] = key;
    g->reached[k] = reached;
}

static void grow_steps(GenericSearch *g) {
    size_t size = g->steps_size;
    uint64_t *asked = g->asked;
    int32_t *reached = g->reached;
    g->asked = NULL;
    g->reached = NULL;
    g->steps_size = size ? 2 * size : 1024;
    g->asked = malloc(g->steps_size * sizeof *asked);
    g->reached = malloc(g->steps_size * sizeof *reached);
    if (g->asked && g->reached) {
        memset(g->asked, 0xff, g->steps_size * sizeof *asked);
        g->step_count = 0;
        for (size_t k = 0; k < size; k++)
            if (asked[k] != UINT64_MAX) put_step(g, asked[k], reached[k]);
    }
    free(asked);
    free(reached);
    if (!g->asked || !g->reached) longjmp(g->arena.out_of_memory, 1);
}

/* A request for steps: the state, their number, and the classes, in whose place the caller puts the next states. */
static void ask(GenericSearch *g, int32_t state, int32_t class_) {
    int32_t *request = g->request;
    if (!request[1]) request[0] = state;
    for (int32_t k = 0; k < request[1]; k++)
        if (request[2 + k] == class_) return;
    request[2 + request[1]++] = class_;
}

/* Keep the answers to the last request; the classes asked for stand in the second half of the caller's array. */
static void take_answers(GenericSearch *g) {
    int32_t *request = g->request, *classes = request + g->p.size + 3;
    while (2 * (g->step_count + (size_t)request[1]) >= g->steps_size) grow_steps(g);
    for (int32_t k = 0; k < request[1]; k++) put_step(g, step_key(request[0], classes[k]), request[2 + k]);
    request[1] = 0;
}

static int32_t asks(GenericSearch *g) {
    if (!g->request[1]) return DONE;
    memcpy(g->request + g->p.size + 3, g->request + 2, (size_t)g->request[1] * sizeof *g->request);
    return ASKS_STEPS;
}

/* -- the walk ------------------------------------------------------------------------------------------------------ */

static int is_linearized(const GenericSearch *g, int32_t i) { return has_bit(g->ahead, g->slot[i]); }

static void linearize_next(GenericSearch *g, int32_t i) {
    if (g->unchanged == g->length && g->length < g->best_length && g->best[g->length] == i) g->unchanged++;
    g->path[g->length++] = i;
}

static void remember_best(GenericSearch *g) {
    g->furthest = g->rank;
    memcpy(g->best + g->unchanged, g->path + g->unchanged, (size_t)(g->length - g->unchanged) * sizeof *g->best);
    g->best_length = g->unchanged = g->length;
}

static int32_t finish(GenericSearch *g, int32_t verdict, int is_proved) {
    int64_t *answer = g->answer;
    if (verdict == LEGAL) {
        g->furthest = g->p.completed - 1;
        remember_best(g);
        g->furthest = g->p.completed;
    }
    answer[AT_VERDICT] = verdict;
    answer[AT_FURTHEST] = g->furthest;
    answer[AT_REFUTED] = verdict != ILLEGAL ? 0 : g->foreseen > g->furthest ? g->foreseen : g->furthest;
    answer[AT_STEPS] = g->steps;
    answer[AT_LENGTH] = g->best_length;
    answer[AT_PROVED] = is_proved;
    answer[AT_CONFIGURATIONS] = (int64_t)g->visited_count;
    g->phase = FINISHED;
    return DONE;
}

static void drop_guess(GenericSearch *g, int32_t class_) {
    g->is_still[class_] = 0;
    g->is_tainted |= g->was_observed[class_];
}

/* Linearize every open operation that changes nothing and is legal, once all that is asked of the model is known. */
static int32_t observe_all(GenericSearch *g) {
    const int32_t *window = g->window + g->window_begin[g->rank];
    int32_t count = (int32_t)(g->window_begin[g->rank + 1] - g->window_begin[g->rank]);
    for (int32_t k = 0; k < count; k++) {
        int32_t class_ = g->class_[window[k]];
        if (g->is_still[class_] && !is_linearized(g, window[k]) && step_of(g, g->state, class_) == UNASKED)
            ask(g, g->state, class_);
    }
    if (g->request[1]) return asks(g);
    for (int32_t k = 0; k < count; k++) {
        int32_t i = window[k], class_ = g->class_[i];
        if (!g->is_still[class_] || is_linearized(g, i)) continue;
        int32_t reached = step_of(g, g->state, class_);
        if (reached == g->state) {
            set_bit(g->ahead, g->slot[i]);
            g->was_observed[class_] = 1;
            linearize_next(g, i);
        } else if (reached != NO_STEP) {
            drop_guess(g, class_);
        }
    }
    return DONE;
}

static size_t place_of_configuration(const GenericSearch *g, int32_t rank, int32_t ahead, int32_t state) {
    uint64_t h = mix((uint64_t)(uint32_t)rank << 32 | (uint32_t)state);
    return (size_t)mix(h ^ (uint32_t)ahead) & (g->table_size - 1);
}

static void grow_visited(GenericSearch *g) {
    size_t size = g->table_size ? 2 * g->table_size : 1024;
    g->table = grown(&g->arena, g->table, size, sizeof *g->table);
    g->table_size = size;
    memset(g->table, 0xff, size * sizeof *g->table);
    /* A later one with the same key heads the list of all that came before it. */
    for (size_t e = 0; e < g->visited_count; e++) {
        const GenericConfiguration *c = &g->visited[e];
        size_t k = place_of_configuration(g, c->rank, c->ahead, c->state);
        while (g->table[k] >= 0 && g->table[k] != c->next) k = (k + 1) & (size - 1);
        g->table[k] = (int32_t)e;
    }
}

/* The place of the configurations with this key in the table. */
static size_t find_configurations(const GenericSearch *g, int32_t rank, int32_t ahead, int32_t state) {
    size_t k = place_of_configuration(g, rank, ahead, state);
    for (; g->table[k] >= 0; k = (k + 1) & (g->table_size - 1)) {
        const GenericConfiguration *c = &g->visited[g->table[k]];
        if (c->rank == rank && c->ahead == ahead && c->state == state) break;
    }
    return k;
}

/* Whether one of these configurations has used up no more pending operations than `used`. */
static int is_covered(const GenericSearch *g, size_t place, int32_t used) {
    for (int32_t e = g->table[place]; e >= 0; e = g->visited[e].next)
        if (is_subset(&g->useds, g->visited[e].used, used)) return 1;
    return 0;
}

/* Remember the configuration; 0 when it was visited with no more pending operations used up. */
static int is_new(GenericSearch *g) {
    if (2 * (g->visited_count + 1) > g->table_size) grow_visited(g);
    int32_t ahead = name_of(&g->aheads, g->ahead, &g->arena);
    size_t place = find_configurations(g, g->rank, ahead, g->state);
    if (is_covered(g, place, g->used)) return 0;
    if (g->visited_count == g->visited_room) {
        size_t room = g->visited_room ? 2 * g->visited_room : 256;
        g->visited = grown(&g->arena, g->visited, room, sizeof *g->visited);
        g->visited_room = room;
    }
    GenericConfiguration added = {g->rank, ahead, g->state, g->used, g->table[place], 0};
    g->table[place] = (int32_t)g->visited_count;
    g->visited[g->visited_count++] = added;
    return 1;
}

static void push_choice(GenericSearch *g) {
    if (g->choice_count == g->choices_room) {
        size_t room = g->choices_room ? 2 * g->choices_room : 256;
        g->choices = grown(&g->arena, g->choices, room, sizeof *g->choices);
        g->choices_room = room;
    }
    Choice choice = {g->rank, g->visited[g->visited_count - 1].ahead, g->state, g->used, g->length, 0, 0};
    g->choices[g->choice_count++] = choice;
}

/* Whether an equal operation that returns earlier is not linearized yet: of the two it goes first. */
static int has_earlier_twin(const GenericSearch *g, const int32_t *window, int32_t at, const uint64_t *ahead) {
    for (int32_t k = 0; k < at; k++)
        if (g->class_[window[k]] == g->class_[window[at]] && !has_bit(ahead, g->slot[window[k]])) return 1;
    return 0;
}

/* The member of a group to be used next before the return of `rank`, NONE when all that were called are used up. */
static int32_t next_unused(const GenericSearch *g, const PendingGroup *group, const uint64_t *used, int32_t rank) {
    int32_t k = group->begin;
    while (k < group->end && has_bit(used, k)) k++;
    if (k == group->end || g->p.call_at[g->members[k]] > g->p.return_at[g->p.by_return[rank]]) return NONE;
    return k;
}

/* Leave in the request the operations that may still come before the one at `position` returns. */
static int32_t ask_for_hope(GenericSearch *g, const int32_t *window, int32_t count, int32_t position) {
    int32_t *request = g->request, end = 3;
    const int32_t last = g->p.return_at[position];
    request[0] = g->state;
    request[1] = position;
    for (int32_t k = 0; k < count; k++)
        if (!is_linearized(g, window[k])) request[end++] = window[k];
    for (int32_t c = g->opened_at[g->rank]; c < g->opened_at[g->rank_of[position]]; c++) request[end++] = g->opening[c];
    for (int32_t n = 0; n < g->group_count; n++)
        for (int32_t k = g->groups[n].begin; k < g->groups[n].end; k++)
            if (!has_bit(g->used_bits, k) && g->p.call_at[g->members[k]] < last) request[end++] = g->members[k];
    request[2] = end - 3;
    g->is_hope_asked = 1;
    return ASKS_HOPE;
}

/* Ask the hook `can_reach` about the next to return, and about open ones told to change nothing, that are illegal. */
static int32_t look_ahead(GenericSearch *g) {
    const int32_t *window = g->window + g->window_begin[g->rank];
    int32_t count = (int32_t)(g->window_begin[g->rank + 1] - g->window_begin[g->rank]);
    for (; g->hope_at < count; g->hope_at++) {
        int32_t i = window[g->hope_at], class_ = g->class_[i];
        if (is_linearized(g, i) || !(g->is_told[class_] || g->hope_at == 0)) continue;
        int32_t reached = step_of(g, g->state, class_);
        if (reached == UNASKED) {
            ask(g, g->state, class_);
            return asks(g);
        }
        if (reached == NO_STEP) return ask_for_hope(g, window, count, i);
    }
    return DONE;
}

/* Take what the hook answered; without hope nothing is tried behind this configuration. */
static void take_hope(GenericSearch *g) {
    int32_t position = g->window[g->window_begin[g->rank] + g->hope_at], has_hope = g->request[1];
    g->request[1] = g->is_hope_asked = 0;
    if (has_hope) {
        g->hope_at++;
        return;
    }
    if (g->rank_of[position] > g->foreseen) g->foreseen = g->rank_of[position];
    g->visited[g->visited_count - 1].is_hopeless = 1;
    g->phase = CHOOSING;
}

/* Take the next operation of the last configuration that has one left. Returns ASKS_STEPS when a step is missing. */
static int32_t choose(GenericSearch *g, int *is_exhausted) {
    while (g->choice_count) {
        Choice *c = &g->choices[g->choice_count - 1];
        const int32_t *window = g->window + g->window_begin[c->rank];
        int32_t count = (int32_t)(g->window_begin[c->rank + 1] - g->window_begin[c->rank]);
        memcpy(g->ahead, set_bits(&g->aheads, c->ahead), g->aheads.words * sizeof *g->ahead);
        memcpy(g->used_bits, set_bits(&g->useds, c->used), g->useds.words * sizeof *g->used_bits);
        g->rank = c->rank;
        g->state = c->state;
        g->used = c->used;
        g->length = c->length;
        if (g->unchanged > g->length) g->unchanged = g->length;
        for (; c->choice < count; c->choice++) {
            int32_t i = window[c->choice];
            if (is_linearized(g, i) || has_earlier_twin(g, window, c->choice, g->ahead)) continue;
            int32_t reached = step_of(g, c->state, g->class_[i]);
            if (reached == UNASKED) {
                /* At the first visit one choice may do; coming back means that mostly all will be tried. */
                int32_t last = c->is_tried ? count : c->choice + 1;
                for (int32_t k = c->choice; k < last; k++)
                    if (!is_linearized(g, window[k]) && step_of(g, c->state, g->class_[window[k]]) == UNASKED)
                        ask(g, c->state, g->class_[window[k]]);
                return asks(g);
            }
            if (reached == NO_STEP) continue;
            c->is_tried = 1;
            c->choice++;
            set_bit(g->ahead, g->slot[i]);
            g->state = reached;
            linearize_next(g, i);
            return DONE;
        }
        for (; c->choice - count < g->group_count; c->choice++) {
            const PendingGroup *group = &g->groups[c->choice - count];
            int32_t k = next_unused(g, group, g->used_bits, c->rank);
            if (k == NONE) continue;
            int32_t reached = step_of(g, c->state, group->class_);
            if (reached == UNASKED) {
                ask(g, c->state, group->class_);
                return asks(g);
            }
            if (reached == NO_STEP || reached == c->state) continue;
            c->choice++;
            set_bit(g->used_bits, k);
            g->used = name_of(&g->useds, g->used_bits, &g->arena);
            g->state = reached;
            linearize_next(g, g->members[k]);
            return DONE;
        }
        g->choice_count--;
    }
    *is_exhausted = 1;
    return DONE;
}

static void advance_rank(GenericSearch *g) {
    while (g->rank < g->p.completed && is_linearized(g, g->p.by_return[g->rank]))
        clear_bit(g->ahead, g->slot[g->p.by_return[g->rank++]]);
}

/* -- the check ----------------------------------------------------------------------------------------------------- */

/* Whether the configuration (rank, `scratch`, state, `used`) is one of those visited, once all that returns has
   returned and what changes nothing is linearized. ASKS_STEPS when a step is missing, -1 when it is not. */
static int32_t cover(GenericSearch *g, int32_t rank, int32_t state, int32_t used) {
    for (;;) {
        while (rank < g->p.completed && has_bit(g->scratch, g->slot[g->p.by_return[rank]]))
            clear_bit(g->scratch, g->slot[g->p.by_return[rank++]]);
        if (rank == g->p.completed) return -1;
        for (int64_t w = g->window_begin[rank]; w < g->window_begin[rank + 1]; w++) {
            int32_t i = g->window[w], class_ = g->class_[i];
            if (!g->is_still[class_] || has_bit(g->scratch, g->slot[i])) continue;
            int32_t reached = step_of(g, state, class_);
            if (reached == UNASKED) {
                ask(g, state, class_);
                return asks(g);
            }
            if (reached == state) set_bit(g->scratch, g->slot[i]);
        }
        if (!has_bit(g->scratch, g->slot[g->p.by_return[rank]])) break;
    }
    int32_t ahead = name_of(&g->aheads, g->scratch, &g->arena);
    return is_covered(g, find_configurations(g, rank, ahead, state), used) ? DONE : -1;
}

/* The earliest call that an order may have needed for `i`: that of `i`, or of an open equal one exchanged with it. */
static int32_t needed_call(const GenericSearch *g, int32_t rank, int32_t i) {
    int32_t call = g->p.call_at[i];
    for (int64_t w = g->window_begin[rank]; w < g->window_begin[rank + 1]; w++) {
        int32_t other = g->window[w];
        if (g->class_[other] == g->class_[i] && !is_linearized(g, other) && g->p.call_at[other] < call)
            call = g->p.call_at[other];
    }
    return call;
}

/* Gather the still operations linearized in the configuration that some order may have left for later.

   Such an order did nothing that was called after the return of the one left: so only those matter that return after
   all calls of what moved the state. Where nothing moved since, an operation that is left finds the state it found. */
static int32_t gather_delayed(GenericSearch *g, const GenericConfiguration *c) {
    const Problem *p = &g->p;
    int32_t count = 0, latest = -1, rank = c->rank;
    for (int64_t w = g->window_begin[rank]; w < g->window_begin[rank + 1]; w++) {
        int32_t i = g->window[w];
        if (!is_linearized(g, i)) continue;
        if (g->is_still[g->class_[i]]) {
            g->delayed[count++] = i;
            continue;
        }
        int32_t call = needed_call(g, rank, i);
        if (call > latest) latest = call;
    }
    for (int32_t k = 0; k < g->pending; k++)
        if (has_bit(g->used_bits, k) && p->call_at[g->members[k]] > latest) latest = p->call_at[g->members[k]];
    int32_t before = rank - 1;
    if (latest < 0) {
        before = g->last_mover[rank];
        if (before < 0) return count;
        for (int64_t w = g->window_begin[before]; w < g->window_begin[before + 1]; w++) {
            int32_t i = g->window[w], r = g->rank_of[i];
            if (r > before && r < rank) g->delayed[count++] = i;
        }
    }
    for (; before >= 0 && p->return_at[p->by_return[before]] > latest; before--) {
        int32_t i = p->by_return[before];
        if (g->is_still[g->class_[i]]) {
            g->delayed[count++] = i;
        } else {
            int32_t call = needed_call(g, rank, i);
            if (call > latest) latest = call;
        }
    }
    return count;
}

/* Whether the guesses hold here. ASKS_STEPS when a step is missing. */
static int32_t check_guesses(GenericSearch *g, const GenericConfiguration *c) {
    int32_t count = gather_delayed(g, c);
    for (int32_t k = 0; k < count; k++)
        if (step_of(g, c->state, g->class_[g->delayed[k]]) == UNASKED) ask(g, c->state, g->class_[g->delayed[k]]);
    if (g->request[1]) return asks(g);
    for (int32_t k = 0; k < count; k++) {
        int32_t class_ = g->class_[g->delayed[k]], reached = step_of(g, c->state, class_);
        if (reached == NO_STEP || reached == c->state) continue;
        /* It stays still for the rest of this check, whose rules are those of the whole pass. */
        g->is_broken[class_] = g->is_wrong_guess = 1;
    }
    return DONE;
}

/* Whether all that can follow the configuration is covered by those visited. */
static int32_t check_configuration(GenericSearch *g, const GenericConfiguration *c) {
    const int32_t *window = g->window + g->window_begin[c->rank];
    int32_t count = (int32_t)(g->window_begin[c->rank + 1] - g->window_begin[c->rank]);
    const size_t bytes = g->aheads.words * sizeof *g->ahead;
    memcpy(g->ahead, set_bits(&g->aheads, c->ahead), bytes);
    memcpy(g->used_bits, set_bits(&g->useds, c->used), g->useds.words * sizeof *g->used_bits);
    int32_t guessed = check_guesses(g, c);
    /* When a guess was wrong all will be tried again: only other wrong ones are looked for. */
    if (guessed != DONE || g->is_wrong_guess || c->is_hopeless) return guessed;
    for (int32_t k = 0; k < count; k++) {
        int32_t i = window[k], class_ = g->class_[i];
        if (is_linearized(g, i) || has_earlier_twin(g, window, k, g->ahead)) continue;
        int32_t reached = step_of(g, c->state, class_);
        if (reached == UNASKED) {
            ask(g, c->state, class_);
            return asks(g);
        }
        if (reached == NO_STEP) continue;
        memcpy(g->scratch, g->ahead, bytes);
        set_bit(g->scratch, g->slot[i]);
        int32_t covered = cover(g, c->rank, reached, c->used);
        if (covered != DONE) return covered;
    }
    for (int32_t n = 0; n < g->group_count; n++) {
        int32_t k = next_unused(g, &g->groups[n], g->used_bits, c->rank);
        if (k == NONE) continue;
        int32_t reached = step_of(g, c->state, g->groups[n].class_);
        if (reached == UNASKED) {
            ask(g, c->state, g->groups[n].class_);
            return asks(g);
        }
        if (reached == NO_STEP || reached == c->state) continue;
        memcpy(g->scratch, g->ahead, bytes);
        memcpy(g->scratch_used, g->used_bits, g->useds.words * sizeof *g->scratch_used);
        set_bit(g->scratch_used, k);
        int32_t covered = cover(g, c->rank, reached, name_of(&g->useds, g->scratch_used, &g->arena));
        if (covered != DONE) return covered;
    }
    return DONE;
}

/* Whether the beginning is covered, and with every configuration all that follows it: then no order is complete. */
static int32_t check_visited(GenericSearch *g) {
    if (!g->checked) {
        g->last_mover[0] = -1;
        for (int32_t r = 0; r < g->p.completed; r++)
            g->last_mover[r + 1] = g->is_still[g->class_[g->p.by_return[r]]] ? g->last_mover[r] : r;
        memset(g->scratch, 0, g->aheads.words * sizeof *g->scratch);
        memset(g->scratch_used, 0, g->useds.words * sizeof *g->scratch_used);
        int32_t covered = cover(g, 0, g->initial, name_of(&g->useds, g->scratch_used, &g->arena));
        if (covered != DONE) return covered;
    }
    for (; g->checked < g->visited_count; g->checked++) {
        if (g->deadline_s > 0 && g->checked % CHECKS_BETWEEN_CLOCKS == 0 && now_s() >= g->deadline_s) {
            g->is_late = 1;
            return -1;
        }
        int32_t covered = check_configuration(g, &g->visited[g->checked]);
        if (covered != DONE) return covered;
    }
    return DONE;
}

/* Whether the hook `can_reach` cut something off although operations were observed that are not told to be still.
   Behind such a cut nothing was looked at that could show the guess to be wrong. */
static int is_cut_by_guess(const GenericSearch *g) {
    int is_guessed = 0;
    for (int32_t k = 0; k < g->classes; k++) is_guessed |= g->was_observed[k] && !g->is_told[k];
    for (size_t e = 0; is_guessed && e < g->visited_count; e++)
        if (g->visited[e].is_hopeless) return 1;
    return 0;
}

/* Begin again with the guesses that held so far, the last time with none. */
static void begin_again(GenericSearch *g) {
    int is_last = g->passes + 1 >= PASSES_MAX;
    for (int32_t k = 0; k < g->classes; k++)
        g->is_still[k] &= !is_last && !g->is_broken[k] && (!g->has_look_ahead || g->is_told[k]);
    begin_pass(g);
}

/* All was tried in vain: refute the history, if no guess was wrong and the check agrees. */
static int32_t refute(GenericSearch *g) {
    if (!g->checked && is_cut_by_guess(g)) g->is_tainted = 1;
    int32_t checked = g->is_tainted ? DONE : check_visited(g);
    if (checked == ASKS_STEPS) return ASKS_STEPS;
    if (checked == DONE && (g->is_tainted || g->is_wrong_guess)) {
        begin_again(g);
        return DONE;
    }
    return finish(g, g->is_late ? UNKNOWN : ILLEGAL, checked == DONE);
}

/* -- the coroutine ------------------------------------------------------------------------------------------------- */

static int is_out_of_budget(const GenericSearch *g) {
    return g->steps >= g->steps_max || (g->deadline_s > 0 && g->steps % 64 == 0 && now_s() >= g->deadline_s);
}

static int32_t walk(GenericSearch *g) {
    int32_t asked = DONE;
    while (g->phase != FINISHED) {
        int is_exhausted = 0;
        switch (g->phase) {
        case ENTERING:
            advance_rank(g);
            if (g->rank == g->p.completed) return finish(g, LEGAL, 1);
            if (is_out_of_budget(g)) {
                if (g->rank > g->furthest) remember_best(g);
                return finish(g, UNKNOWN, 0);
            }
            g->steps++;
            g->phase = OBSERVING;
            break;
        case OBSERVING:
            if ((asked = observe_all(g)) != DONE) return asked;
            g->phase = ENTERING;
            /* The next to return may just have been observed: then the rank moves on before anything is chosen. */
            if (is_linearized(g, g->p.by_return[g->rank])) break;
            if (g->rank > g->furthest) remember_best(g);
            g->phase = CHOOSING;
            if (!is_new(g)) break;
            g->hope_at = 0;
            if (g->has_look_ahead) g->phase = HOPING;
            else push_choice(g);
            break;
        case HOPING:
            if ((asked = look_ahead(g)) != DONE) return asked;
            push_choice(g);
            g->phase = CHOOSING;
            break;
        case CHOOSING:
            if ((asked = choose(g, &is_exhausted)) != DONE) return asked;
            g->phase = is_exhausted ? CHECKING : ENTERING;
            break;
        case CHECKING:
            if ((asked = refute(g)) != DONE) return asked;
            break;
        }
    }
    return DONE;
}

void faultline_generic_close(GenericSearch *g) {
    if (!g) return;
    arena_close(&g->arena);
    free_sets(&g->aheads);
    free_sets(&g->useds);
    free(g->asked);
    free(g->reached);
    free(g->choices);
    free(g->visited);
    free(g->table);
    free(g);
}

GenericSearch *faultline_generic_open(
    int32_t operations, int32_t classes, const int32_t *class_, const int64_t *call, const int64_t *return_,
    const int8_t *told, int32_t has_look_ahead, int32_t initial, int64_t steps_max, double timeout_s,
    int32_t *request, int64_t *answer) {
    GenericSearch *g = calloc(1, sizeof *g);
    if (!g) return NULL;
    if (setjmp(g->arena.out_of_memory)) {
        faultline_generic_close(g);
        return NULL;
    }
    Arena *arena = &g->arena;
    g->p.arena = arena;
    g->p.size = operations;
    g->classes = classes;
    g->class_ = TAKE(arena, int32_t, operations + 1);
    g->p.call = TAKE(arena, int64_t, operations + 1);
    g->p.return_ = TAKE(arena, int64_t, operations + 1);
    g->is_told = TAKE(arena, uint8_t, classes + 1);
    memcpy(g->class_, class_, (size_t)operations * sizeof *class_);
    memcpy(g->p.call, call, (size_t)operations * sizeof *call);
    memcpy(g->p.return_, return_, (size_t)operations * sizeof *return_);
    memcpy(g->is_told, told, (size_t)classes);
    g->has_look_ahead = has_look_ahead;
    g->initial = initial;
    g->steps_max = steps_max;
    g->deadline_s = timeout_s > 0 ? now_s() + timeout_s : 0;
    g->request = request;
    g->answer = answer;
    request[1] = 0;
    prepare_generic(g);
    grow_steps(g);
    grow_visited(g);
    begin_pass(g);
    return g;
}

/* Go on with the answers in the request: DONE, or what is asked now. */
int32_t faultline_generic_run(GenericSearch *g) {
    if (setjmp(g->arena.out_of_memory)) return OUT_OF_MEMORY;
    if (g->is_hope_asked) take_hope(g);
    else take_answers(g);
    return walk(g);
}

/* End the walk: its time is over. */
void faultline_generic_give_up(GenericSearch *g) {
    if (g->phase == FINISHED) return;
    if (g->rank > g->furthest) remember_best(g);
    finish(g, UNKNOWN, 0);
}

int32_t faultline_generic_order(const GenericSearch *g, int32_t *order) {
    memcpy(order, g->best, (size_t)g->best_length * sizeof *order);
    return g->best_length;
}

/* Write down a visited configuration: rank, state, hopeless, number of operations ahead, these, the pending ones used up. Returns the length of all that. */
int32_t faultline_generic_configuration(const GenericSearch *g, int64_t number, int32_t *record) {
    const GenericConfiguration *c = &g->visited[number];
    int32_t end = 4;
    for (int64_t w = g->window_begin[c->rank]; w < g->window_begin[c->rank + 1]; w++)
        if (has_bit(set_bits(&g->aheads, c->ahead), g->slot[g->window[w]])) record[end++] = g->window[w];
    record[3] = end - 4;
    for (int32_t k = 0; k < g->pending; k++)
        if (has_bit(set_bits(&g->useds, c->used), k)) record[end++] = g->members[k];
    record[0] = c->rank;
    record[1] = c->state;
    record[2] = c->is_hopeless;
    return end;
}

/* Whether a class still counts as one that changes nothing. */
int32_t faultline_generic_is_still(const GenericSearch *g, int32_t class_) { return g->is_still[class_]; }
