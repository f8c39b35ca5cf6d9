/* Check all keys of a history in one call.

   Columns by operation: key, kind (see problem.h), demand and produce (numbers of values, 0 is the initial one; of an
   append, produce and demand are the first and one past the last of its edges), call, return (negative: pending).
   Keys are numbered from 0. Edges (from, to) are ordered by the length of the text they come from.

   `method` may forbid the monitor (BY_SEARCH). Keys are searched with first_steps each; whoever needs more waits until
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
