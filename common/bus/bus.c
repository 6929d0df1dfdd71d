/* The thin layer over a backend: checks what every backend must keep. */
#include "common/bus/bus.h"

#include "common/base/assert.h"

enum toc_status
toc_bus_send(struct toc_bus *bus, const char *topic, int32_t partition,
             struct toc_str message, void *opaque, struct toc_error *reterr)
{
    TOC_ASSERT(partition >= 0);
    return bus->ops->send(bus->self, topic, partition, message, opaque, reterr);
}

void
toc_bus_interrupt(struct toc_bus *bus)
{
    if (bus->ops->interrupt != NULL)
        bus->ops->interrupt(bus->self);
}

size_t
toc_bus_poll(struct toc_bus *bus, int64_t timeout_ms)
{
    return bus->ops->poll(bus->self, timeout_ms < 0 ? 0 : timeout_ms);
}

enum toc_status
toc_bus_flush(struct toc_bus *bus, int64_t timeout_ms, struct toc_error *reterr)
{
    return bus->ops->flush(bus->self, timeout_ms < 0 ? 0 : timeout_ms, reterr);
}

enum toc_status
toc_bus_end_offset(struct toc_bus *bus, const char *topic, int32_t partition,
                   int64_t timeout_ms, int64_t *ret_offset,
                   struct toc_error *reterr)
{
    return bus->ops->end_offset(bus->self, topic, partition, timeout_ms,
                                ret_offset, reterr);
}

enum toc_status
toc_bus_committed(struct toc_bus *bus, const char *group, const char *topic,
                  int32_t partitions, int64_t timeout_ms, int64_t *ret_offsets,
                  struct toc_error *reterr)
{
    if (partitions <= 0)
        return TOC_OK;
    return bus->ops->committed(bus->self, group, topic, partitions, timeout_ms,
                               ret_offsets, reterr);
}

enum toc_status
toc_bus_ensure_topic(struct toc_bus *bus, const char *topic, int32_t partitions,
                     int64_t timeout_ms, int32_t *ret_partitions,
                     struct toc_error *reterr)
{
    TOC_ASSERT(partitions > 0);
    return bus->ops->ensure_topic(bus->self, topic, partitions, timeout_ms,
                                  ret_partitions, reterr);
}

size_t
toc_bus_consumer_poll(struct toc_bus_consumer *consumer,
                      struct toc_bus_message *messages, size_t max,
                      int64_t timeout_ms)
{
    size_t n = consumer->ops->poll(consumer->self, messages, max,
                                   timeout_ms < 0 ? 0 : timeout_ms);
    TOC_ASSERT(n <= max);
    return n;
}

void
toc_bus_consumer_release(struct toc_bus_consumer *consumer,
                         struct toc_bus_message *message)
{
    consumer->ops->release(consumer->self, message);
}

void
toc_bus_consumer_mark(struct toc_bus_consumer *consumer, int16_t topic,
                      int32_t partition, int64_t next_offset)
{
    consumer->ops->mark(consumer->self, topic, partition, next_offset);
}

enum toc_status
toc_bus_consumer_commit(struct toc_bus_consumer *consumer, bool wait,
                        struct toc_error *reterr)
{
    return consumer->ops->commit(consumer->self, wait, reterr);
}

void
toc_bus_consumer_pause(struct toc_bus_consumer *consumer, int16_t topic,
                       bool paused)
{
    consumer->ops->pause(consumer->self, topic, paused);
}

enum toc_status
toc_bus_consumer_join(struct toc_bus_consumer *consumer, bool join,
                      struct toc_error *reterr)
{
    return consumer->ops->join(consumer->self, join, reterr);
}

void
toc_bus_consumer_wake(struct toc_bus_consumer *consumer)
{
    consumer->ops->wake(consumer->self);
}
