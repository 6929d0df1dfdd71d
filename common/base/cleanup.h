/*
 * Locals with one owner. `TOC_CLEANUP(toc_buf_done) struct toc_buf buf = ...`
 * runs toc_buf_done(&buf) when the scope ends, by whatever way;
 * `TOC_AUTO_FREE char *p` frees p; `toc_steal(&p)` hands it on.
 */
#ifndef TOC_BASE_CLEANUP_H
#define TOC_BASE_CLEANUP_H

#include "common/base/alloc.h"

#define TOC_CLEANUP(fn) __attribute__((cleanup(fn)))

static inline void
toc_cleanup_free(void *ptr_to_ptr)
{
    void **ptr = ptr_to_ptr;
    toc_free(*ptr);
    *ptr = NULL;
}
#define TOC_AUTO_FREE TOC_CLEANUP(toc_cleanup_free)

/* Takes the pointer out of *p and leaves NULL there. */
#define toc_steal(p) toc_steal_ptr((void *)(p))
static inline void *
toc_steal_ptr(void *ptr_to_ptr)
{
    void **ptr = ptr_to_ptr;
    void *held = *ptr;
    *ptr = NULL;
    return held;
}

#endif
