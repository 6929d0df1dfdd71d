#include "common/bus/fault/bus_fault.h"

static size_t
fault_poll(void *self, struct toc_bus_message *messages, size_t max,
           int64_t timeout_ms)
{
    static const struct toc_fault_op op = {"bus", "consumer_poll"};
    struct toc_consumer_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &op);
    size_t n;

    if (how == TOC_FAULT_FAIL)
        return 0;
    n = toc_bus_consumer_poll(fault->inner, messages, max, timeout_ms);
    if (toc_fault_after(fault->plan, &op, how, TOC_OK, NULL) == TOC_OK)
        return n;
    for (size_t i = 0; i < n; i++)
        toc_bus_consumer_release(fault->inner, &messages[i]);
    return 0;
}

static void
fault_release(void *self, struct toc_bus_message *message)
{
    struct toc_consumer_fault *fault = self;

    toc_bus_consumer_release(fault->inner, message);
}

static void
fault_mark(void *self, int16_t topic, int32_t partition, int64_t next_offset)
{
    static const struct toc_fault_op op = {"bus", "mark"};
    struct toc_consumer_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &op);

    if (how == TOC_FAULT_FAIL)
        return;
    toc_bus_consumer_mark(fault->inner, topic, partition, next_offset);
    (void)!toc_fault_after(fault->plan, &op, how, TOC_OK, NULL);
}

static enum toc_status
fault_commit(void *self, bool wait, struct toc_error *reterr)
{
    static const struct toc_fault_op op = {"bus", "commit"};
    struct toc_consumer_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &op);

    if (how == TOC_FAULT_FAIL)
        return toc_fault_failed(&op, reterr);
    return toc_fault_after(fault->plan, &op, how,
                           toc_bus_consumer_commit(fault->inner, wait, reterr),
                           reterr);
}

static void
fault_pause(void *self, int16_t topic, bool paused)
{
    struct toc_consumer_fault *fault = self;

    toc_bus_consumer_pause(fault->inner, topic, paused);
}

static enum toc_status
fault_join(void *self, bool join, struct toc_error *reterr)
{
    static const struct toc_fault_op op = {"bus", "join"};
    struct toc_consumer_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &op);

    if (how == TOC_FAULT_FAIL)
        return toc_fault_failed(&op, reterr);
    return toc_fault_after(fault->plan, &op, how,
                           toc_bus_consumer_join(fault->inner, join, reterr),
                           reterr);
}

static void
fault_wake(void *self)
{
    struct toc_consumer_fault *fault = self;

    toc_bus_consumer_wake(fault->inner);
}

static const struct toc_bus_consumer_ops fault_ops = {
    .name = "fault",
    .poll = fault_poll,
    .release = fault_release,
    .mark = fault_mark,
    .commit = fault_commit,
    .pause = fault_pause,
    .join = fault_join,
    .wake = fault_wake,
};

void
toc_consumer_fault_init(struct toc_consumer_fault *fault,
                        struct toc_bus_consumer *inner,
                        const struct toc_fault_plan *plan)
{
    *fault = (struct toc_consumer_fault){
        .port = {&fault_ops, fault}, .inner = inner, .plan = plan};
}
