/* Check all keys of a history in one call.

   Columns by operation: key, kind (see problem.h), demand and produce (numbers of values, 0 is the initial one; of an
   append, produce and demand are the first and one past the last of its edges), call, return (negative: pending).
   Keys are numbered from 0. Edges (from, to) are ordered by the length of the text they come from.

   `method` may forbid the monitor (BY_SEARCH). Keys are searched with first_steps each; one that needs more waits until
   all others had their turn, then gets eight times as many, up to steps_max.

   Answers by key: verdict, method, steps, furthest, state, and in order[order_begin .. + order_length] the
   linearization found, the longest one that the search found, or, where the monitor refused, the operations that
   contradict each other. state is a number of a value, or -1. Returns 0; 1 when memory ran out; 2 when a linearization did not hold when it was replayed. */
int faultline_check(
    int64_t operations, int32_t keys, int32_t values,
    const int32_t *key, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_,
    int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int32_t method, int64_t first_steps, int64_t steps_max, double timeout_s,
    int8_t *verdict, int8_t *decided_by, int64_t *steps, int32_t *furthest, int32_t *state,
    int64_t *order_begin, int32_t *order_length, int32_t *order);
int32_t faultline_kernel_version(void);

/* The generic search of one part, for a model that the caller steps: see generic.c.

   `open` takes the operations (number of the class, call, return; negative: pending), which classes are told to change
   nothing, and the number of the initial state. `request` has room for 2 * (operations + 3) numbers, `answer` for 7.
   `run` walks, and returns 0 when it is done: verdict, furthest, refuted, steps, length of the order, proved and number
   of configurations stand in `answer`. 1: it asks for steps; request[0] is a state, request[1] a number of classes,
   which follow; the caller puts the next state (-1: illegal) in the place of each class, and runs on. 2: it asks whether
   in the state request[0] the operation request[1] can become legal by means of request[2] operations, which follow; the
   caller puts 0 or 1 into request[1]. 3: memory ran out. */
typedef struct GenericSearch GenericSearch;
GenericSearch *faultline_generic_open(
    int32_t operations, int32_t classes, const int32_t *class_, const int64_t *call, const int64_t *return_,
    const int8_t *told, int32_t has_look_ahead, int32_t initial, int64_t steps_max, double timeout_s,
    int32_t *request, int64_t *answer);
int32_t faultline_generic_run(GenericSearch *search);
void faultline_generic_give_up(GenericSearch *search);
int32_t faultline_generic_order(const GenericSearch *search, int32_t *order);
int32_t faultline_generic_configuration(const GenericSearch *search, int64_t number, int32_t *record);
int32_t faultline_generic_is_still(const GenericSearch *search, int32_t class_);
void faultline_generic_close(GenericSearch *search);
/* The frontier of one key: the columns as above, without `key`. Returns NULL when memory ran out; otherwise `told` gets
   the verdict (0 legal, 1 illegal, 2 given up after so many looks, or too long), the number of the return that makes
   the key illegal, the looks, and the lengths of the arrays that `faultline_take_refutation` fills: of
   rank and state (the two arrays of beginnings are one longer), of ahead and of used. Forget what was returned. */
typedef struct FaultlineRefutation FaultlineRefutation;
FaultlineRefutation *faultline_refute(
    int32_t size, int32_t values, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_, int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int64_t looks_max, double timeout_s, int64_t *told);
void faultline_take_refutation(
    const FaultlineRefutation *found, int32_t *rank, int32_t *state,
    int32_t *ahead_begin, int32_t *ahead, int32_t *used_begin, int32_t *used);
void faultline_forget(FaultlineRefutation *found);

/* Whether so many configurations refute the key: 0, or what is wrong with number `at` of them: 1 it is none, 2 it has a
   step to a configuration that is not in the set, 3 to the end of the history. -1 when memory ran out. */
int faultline_verify(
    int32_t size, int32_t values, const int8_t *kind, const int32_t *demand, const int32_t *produce,
    const int64_t *call, const int64_t *return_, int32_t edges, const int32_t *edge_from, const int32_t *edge_to,
    int64_t count, const int32_t *rank, const int32_t *state, const int32_t *ahead_begin, const int32_t *ahead,
    const int32_t *used_begin, const int32_t *used, int64_t *at);

/* Judge a queue, or a stack, into which every value is put once: see containers.c. By value the calls and returns of its
   put and take, and the caller's numbers of these two (take -1: it stays); then the removals that found nothing, with a
   moment at which that can be. `order` and `illegal` have room for all of them. Returns the length of the order in
   `order`; or minus the number of values in `illegal` that have none, for a queue two of which the second overtook the
   first; or INT32_MIN when memory ran out. */
int32_t faultline_container(
    int32_t is_stack, int32_t count, const int64_t *put_call, const int64_t *put_return, const int64_t *take_call,
    const int64_t *take_return, const int32_t *put, const int32_t *take, int32_t empties, const int64_t *empty_moment,
    const int64_t *empty_call, const int32_t *empty, int32_t *order, int32_t *illegal);
