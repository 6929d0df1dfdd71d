#include "executor/counters.h"

#include "common/base/log.h"

void
exec_counters_log(const struct exec_counters *counters)
{
#define X(name, text) , F_UINT(#name, EXEC_COUNTED(counters, name))
    TOC_LOG(INFO, "executor.counters",
            F_MSG("counted since the start") EXEC_COUNTER_MAP(X));
#undef X
}
