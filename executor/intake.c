#include "executor/intake.h"

#include "common/base/alloc.h"
#include "common/base/log.h"
#include "common/model/hint.h"

#define TELL_EVERY_MS 1000

void
exec_intake_done(struct exec_intake *intake)
{
    toc_arena_done(&intake->scratch);
}

static void
tell_garbage(struct exec_intake *intake, const struct exec_place *place,
             int64_t offset, const struct toc_error *err, int64_t now_ms)
{
    EXEC_COUNT(intake->counters, garbage, 1);
    if (now_ms >= intake->told_ms && now_ms - intake->told_ms < TELL_EVERY_MS) {
        intake->untold++;
        return;
    }
    TOC_LOG(WARN, "hint.undecodable",
            F_MSG("passed a message, its tasks are hinted again"), F_ERR(err),
            F_INT("topic", place->topic), F_INT("partition", place->partition),
            F_INT("offset", offset), F_UINT("untold", intake->untold));
    intake->told_ms = now_ms;
    intake->untold = 0;
}

static struct exec_delivery *
new_delivery(const struct exec_place *place, int64_t offset, size_t n)
{
    struct exec_delivery *delivery =
        toc_calloc(1, sizeof *delivery + n * sizeof delivery->items[0]);

    toc_list_init(&delivery->event.link);
    delivery->event.kind = EXEC_EVENT_DELIVERY;
    delivery->place = *place;
    delivery->offset = offset;
    return delivery;
}

struct exec_delivery *
exec_intake_decode(struct exec_intake *intake,
                   const struct toc_bus_message *message,
                   const struct exec_place *place, int64_t now_ms)
{
    struct exec_delivery *delivery;
    struct toc_hint *hints = NULL;
    struct toc_error err = {0};
    size_t n = 0;

    toc_arena_reset(&intake->scratch);
    EXEC_COUNT(intake->counters, messages, 1);
    if (toc_hint_decode(message->bytes, &intake->scratch, &hints, &n, &err) !=
        TOC_OK) {
        n = 0;
        tell_garbage(intake, place, message->offset, &err, now_ms);
    }
    EXEC_COUNT(intake->counters, hints, n);
    delivery = new_delivery(place, message->offset, n);
    for (size_t i = 0; i < n; i++) {
        if (hints[i].task.due_ms > now_ms + EXEC_HINT_AHEAD_MS_MAX) {
            EXEC_COUNT(intake->counters, far, 1);
            continue;
        }
        delivery->items[delivery->n++] =
            exec_item_new(&hints[i], &intake->scratch);
    }
    return delivery;
}
