#include "common/bus/fault/bus_fault.h"

#include "common/base/alloc.h"

#include <string.h>

/* What every operation does around the inner one's call. */
#define WITH_FAULTS(name, call)                              \
    static const struct toc_fault_op op = {"bus", name};     \
    enum toc_fault how = toc_fault_before(fault->plan, &op); \
    enum toc_status st;                                      \
                                                             \
    if (how == TOC_FAULT_FAIL)                               \
        return toc_fault_failed(&op, reterr);                \
    st = toc_fault_after(fault->plan, &op, how, call, reterr)

/* A message that was sent, in place of its sender's opaque. */
struct ticket {
    struct toc_link link;
    void *opaque;
    enum toc_fault how;
};

static const struct toc_fault_op send_op = {"bus", "send"};

static void
tear(struct ticket *ticket)
{
    toc_list_remove(&ticket->link);
    toc_free(ticket);
}

static enum toc_status
fault_send(void *self, const char *topic, int32_t partition,
           struct toc_str message, void *opaque, struct toc_error *reterr)
{
    struct toc_bus_fault *fault = self;
    enum toc_fault how = toc_fault_before(fault->plan, &send_op);
    struct ticket *ticket;
    enum toc_status st;

    if (how == TOC_FAULT_FAIL)
        return toc_fault_failed(&send_op, reterr);
    ticket = TOC_NEW(struct ticket);
    ticket->opaque = opaque;
    ticket->how = how;
    toc_list_push(&fault->tickets, &ticket->link);
    st = toc_bus_send(fault->inner, topic, partition, message, ticket, reterr);
    if (st != TOC_OK)
        tear(ticket); /* no report will come */
    return st;
}

void
toc_bus_fault_report(void *arg, void *opaque, enum toc_status st,
                     int64_t offset)
{
    struct toc_bus_fault *fault = arg;
    struct ticket *ticket = opaque;
    void *senders = ticket->opaque;

    st = toc_fault_after(fault->plan, &send_op, ticket->how, st, NULL);
    tear(ticket);
    if (fault->report != NULL)
        fault->report(fault->report_arg, senders, st,
                      st == TOC_OK ? offset : -1);
}

static size_t
fault_poll(void *self, int64_t timeout_ms)
{
    struct toc_bus_fault *fault = self;

    return toc_bus_poll(fault->inner, timeout_ms);
}

static enum toc_status
fault_flush(void *self, int64_t timeout_ms, struct toc_error *reterr)
{
    struct toc_bus_fault *fault = self;

    WITH_FAULTS("flush", toc_bus_flush(fault->inner, timeout_ms, reterr));
    return st;
}

static enum toc_status
fault_end_offset(void *self, const char *topic, int32_t partition,
                 int64_t timeout_ms, int64_t *ret_offset,
                 struct toc_error *reterr)
{
    struct toc_bus_fault *fault = self;
    int64_t offset = 0;

    WITH_FAULTS("end_offset", toc_bus_end_offset(fault->inner, topic, partition,
                                                 timeout_ms, &offset, reterr));
    if (st == TOC_OK)
        *ret_offset = offset;
    return st;
}

static enum toc_status
fault_committed(void *self, const char *group, const char *topic,
                int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
                struct toc_error *reterr)
{
    struct toc_bus_fault *fault = self;

    /* a question: that its answer is lost is the same as that it failed */
    WITH_FAULTS("committed",
                how == TOC_FAULT_LOSE_ACK
                    ? TOC_OK
                    : toc_bus_committed(fault->inner, group, topic, partitions,
                                        timeout_ms, ret_offsets, reterr));
    return st;
}

static enum toc_status
fault_ensure_topic(void *self, const char *topic, int32_t partitions,
                   int64_t timeout_ms, int32_t *ret_partitions,
                   struct toc_error *reterr)
{
    struct toc_bus_fault *fault = self;
    int32_t n = 0;

    WITH_FAULTS("ensure_topic",
                toc_bus_ensure_topic(fault->inner, topic, partitions,
                                     timeout_ms, &n, reterr));
    if (st == TOC_OK)
        *ret_partitions = n;
    return st;
}

static void
fault_interrupt(void *self)
{
    struct toc_bus_fault *fault = self;

    toc_bus_interrupt(fault->inner);
}

static const struct toc_bus_ops fault_ops = {
    .name = "fault",
    .send = fault_send,
    .poll = fault_poll,
    .flush = fault_flush,
    .end_offset = fault_end_offset,
    .committed = fault_committed,
    .ensure_topic = fault_ensure_topic,
    .interrupt = fault_interrupt,
};

void
toc_bus_fault_init(struct toc_bus_fault *fault,
                   const struct toc_fault_plan *plan, toc_bus_report_fn *report,
                   void *report_arg)
{
    *fault = (struct toc_bus_fault){.port = {&fault_ops, fault},
                                    .plan = plan,
                                    .report = report,
                                    .report_arg = report_arg};
    toc_list_init(&fault->tickets);
}

void
toc_bus_fault_done(struct toc_bus_fault *fault)
{
    while (!toc_list_empty(&fault->tickets))
        tear(toc_container_of(fault->tickets.next, struct ticket, link));
}
