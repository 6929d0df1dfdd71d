#include "scheduler/lag.h"

#include "common/base/cleanup.h"
#include "common/base/log.h"

#define TIMEOUT_MS 2000
#define BUSY_MS 250
#define IDLE_MS 500

int64_t
sched_lag_step(struct sched_lag *lag)
{
    TOC_AUTO_FREE int64_t *offsets =
        TOC_NEW_ARRAY(int64_t, (size_t)lag->marks->partitions);
    struct toc_error err = {0};
    bool busy = false;

    for (int i = 0; i < TOC_PRIORITIES; i++) {
        enum toc_priority priority = (enum toc_priority)i;
        if (!sched_marks_wants_committed(lag->marks, priority))
            continue;
        busy = true;
        if (toc_bus_committed(lag->bus, lag->group, lag->topics[i],
                              lag->marks->partitions, TIMEOUT_MS, offsets,
                              &err) == TOC_OK)
            sched_marks_set_committed(lag->marks, priority, offsets,
                                      toc_clock_mono(lag->clk).ns);
        else
            TOC_LOG(DEBUG, "lag.unknown",
                    F_MSG("committed offsets cannot be read, holding"),
                    F_ERR(&err));
    }
    return toc_mono_add_ms(toc_clock_mono(lag->clk), busy ? BUSY_MS : IDLE_MS)
        .ns;
}
