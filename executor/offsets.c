#include "executor/offsets.h"

#include "common/base/alloc.h"
#include "common/base/assert.h"

void
exec_offsets_init(struct exec_offsets *offsets)
{
    toc_list_init(&offsets->partitions);
    offsets->messages = 0;
}

void
exec_offsets_done(struct exec_offsets *offsets)
{
    while (!toc_list_empty(&offsets->partitions))
        exec_offsets_revoke(offsets,
                            toc_container_of(offsets->partitions.next,
                                             struct exec_partition, link));
}

static bool
place_eq(const struct exec_place *a, const struct exec_place *b)
{
    return a->lane == b->lane && a->topic == b->topic &&
           a->partition == b->partition && a->generation == b->generation;
}

struct exec_partition *
exec_offsets_find(struct exec_offsets *offsets, const struct exec_place *place)
{
    struct toc_link *link = offsets->partitions.next;

    for (; link != &offsets->partitions; link = link->next) {
        struct exec_partition *partition =
            toc_container_of(link, struct exec_partition, link);
        if (place_eq(&partition->place, place))
            return partition;
    }
    return NULL;
}

void
exec_offsets_assign(struct exec_offsets *offsets,
                    const struct exec_place *place)
{
    struct exec_partition *partition;

    TOC_ASSERT(exec_offsets_find(offsets, place) == NULL);
    partition = TOC_NEW(struct exec_partition);
    partition->place = *place;
    toc_list_init(&partition->messages);
    toc_list_push(&offsets->partitions, &partition->link);
}

static void
drop_message(struct exec_offsets *offsets, struct exec_message *message)
{
    toc_list_remove(&message->link);
    TOC_ASSERT(offsets->messages > 0);
    offsets->messages--;
    toc_free(message);
}

void
exec_offsets_revoke(struct exec_offsets *offsets,
                    struct exec_partition *partition)
{
    while (!toc_list_empty(&partition->messages))
        drop_message(offsets, toc_container_of(partition->messages.next,
                                               struct exec_message, link));
    toc_list_remove(&partition->link);
    toc_free(partition);
}

static void
advance(struct exec_offsets *offsets, struct exec_partition *partition)
{
    while (!toc_list_empty(&partition->messages)) {
        struct exec_message *first = toc_container_of(
            partition->messages.next, struct exec_message, link);

        if (first->undecided > 0)
            return;
        partition->mark = first->offset + 1;
        partition->marked = true;
        drop_message(offsets, first);
    }
}

struct exec_message *
exec_offsets_arrive(struct exec_offsets *offsets,
                    struct exec_partition *partition, int64_t offset, size_t n)
{
    struct exec_message *message = TOC_NEW(struct exec_message);

    message->partition = partition;
    message->offset = offset;
    message->undecided = n;
    toc_list_push(&partition->messages, &message->link);
    offsets->messages++;
    if (n > 0)
        return message;
    advance(offsets, partition);
    return NULL;
}

void
exec_offsets_decide(struct exec_offsets *offsets, struct exec_message *message)
{
    TOC_ASSERT(message->undecided > 0);
    message->undecided--;
    if (message->undecided == 0)
        advance(offsets, message->partition);
}

void
exec_offsets_take_marks(struct exec_offsets *offsets, exec_mark_fn *fn,
                        void *arg)
{
    struct toc_link *link = offsets->partitions.next;

    for (; link != &offsets->partitions; link = link->next) {
        struct exec_partition *partition =
            toc_container_of(link, struct exec_partition, link);

        if (!partition->marked)
            continue;
        partition->marked = false;
        fn(arg, &partition->place, partition->mark);
    }
}
