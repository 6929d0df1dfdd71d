/*
 * TOC_ASSERT: for what can only be a bug of ours. It is on in production,
 * prints where it stands and ends the process: a crash is something the whole
 * system is built to survive, going on with broken state is not. What a peer,
 * a user or the database sent is never asserted.
 */
#ifndef TOC_BASE_ASSERT_H
#define TOC_BASE_ASSERT_H

#define TOC_ASSERT(cond) \
    ((cond) ? (void)0 : toc_assert_fail(#cond, __FILE__, __LINE__))

__attribute__((noreturn)) void toc_assert_fail(const char *cond,
                                               const char *file, int line);

#endif
