/*
 * Memory of the simulation, by owner: all that a simulated process holds goes
 * at once when it is killed, as it would go with a real one.
 *
 * toc_alloc and its siblings take from the pool that is current. A block may be
 * freed while another pool is current; it leaves the one it came from.
 *
 * Threads: one.
 */
#ifndef TOC_SIM_POOL_H
#define TOC_SIM_POOL_H

#include "common/base/list.h"

#include <stddef.h>

struct sim_pool {
    struct toc_link blocks;
};

/* Before the first allocation of the program. */
void sim_pool_begin(void);
void sim_pool_init(struct sim_pool *pool);
/* Frees every block of it; it can be used again. */
void sim_pool_drop(struct sim_pool *pool);
/* Makes it the current one, and tells the one before. */
struct sim_pool *sim_pool_use(struct sim_pool *pool);

#endif
