#include "executor/counters.h"

#include "common/base/log.h"

#define FIELDS_MAX 32

void
exec_counters_log(const struct exec_counters *counters)
{
    struct toc_field fields[FIELDS_MAX];
    size_t n = 0;
    uint64_t value;

    fields[n++] = F_MSG("counted since the start");
#define X(name, text)                                                    \
    value = atomic_load_explicit(&counters->name, memory_order_relaxed); \
    if (value > 0)                                                       \
        fields[n++] = F_UINT(#name, value);
    EXEC_COUNTER_MAP(X)
#undef X
    if (toc_log_on(TOC_LOG_INFO))
        toc_log_write(TOC_LOG_INFO, "executor.counters", fields, n);
}
