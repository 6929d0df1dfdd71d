#include "scheduler/access/service_internal.h"

#include "common/base/assert.h"
#include "scheduler/access/wire.h"

#include <string.h>

static bool
method_is(unsigned method, const char *name)
{
    return strcmp(toc__v1__timeout_service__descriptor.methods[method].name,
                  name) == 0;
}

/* Batches are checked item by item, by who takes them apart. */
static bool
check_wire(unsigned method, const ProtobufCMessage *request,
           struct toc_rpc_call *call)
{
    struct toc_rpc_failure failure;
    struct sched_check check;

    if (method == SCHED_BATCH_SUBMIT || method == SCHED_BATCH_CANCEL)
        return true;
    toc_rpc_failure_init(&failure, toc_rpc_call_arena(call));
    sched_check_init(&check, &failure, "");
    sched_wire_check(&check, toc_rpc_call_bytes(call), request->descriptor);
    if (sched_check_ok(&check))
        return true;
    toc_rpc_fail(call, &failure);
    return false;
}

void
sched_access_handle(void *self, unsigned method,
                    const ProtobufCMessage *request, struct toc_rpc_call *call)
{
    struct sched_access *access = self;
    int64_t skew_ms = sched_skew_off_ms(access->skew);

    TOC_ASSERT(method_is(SCHED_RUN_NOW, "RunNow"));
    if (skew_ms != 0) {
        toc_rpc_fail_text(call, TOC_UNAVAILABLE,
                          "this node's clock is %lld ms off the database's; "
                          "ask another",
                          (long long)skew_ms);
        return;
    }
    if (method == SCHED_UPDATE_ATTRIBUTES) {
        toc_rpc_fail_text(call, TOC_UNIMPLEMENTED,
                          "UpdateAttributes is not served yet");
        return;
    }
    if (!check_wire(method, request, call))
        return;
    if (method == SCHED_SUBMIT)
        sched_submit_handle(access, (const void *)request, call);
    else if (method == SCHED_BATCH_SUBMIT)
        sched_batch_submit_handle(access, (const void *)request, call);
    else
        sched_command_handle(access, (enum sched_method)method, request, call);
}
