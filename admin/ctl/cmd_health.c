#include "admin/ctl/commands.h"

#include "admin/ctl/conn.h"
#include "admin/ctl/text.h"
#include "grpc/health/v1/health.pb-c.h"

#define HEALTH_TIMEOUT_MS 2000

static const char *
status_text(Grpc__Health__V1__HealthCheckResponse__ServingStatus status)
{
    const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(
        &grpc__health__v1__health_check_response__serving_status__descriptor,
        (int)status);

    return value != NULL ? value->name : "UNKNOWN";
}

/* For probes: nothing but the address is needed, and only SERVING is good. */
enum ctl_exit
ctl_cmd_health(struct ctl *ctl)
{
    Grpc__Health__V1__HealthCheckRequest request =
        GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    Grpc__Health__V1__HealthCheckResponse *answer;
    const char *address = ctl->args[0];
    const char *service = ctl_flag(ctl, "service");
    ProtobufCMessage *reply;
    struct toc_error error = {.status = TOC_OK};
    enum toc_status st;

    if (!ctl_address_valid(toc_str_of(address)))
        return ctl_fail(ctl, CTL_USAGE, "an address looks like 127.0.0.1:7000",
                        "not an address: %s",
                        ctl_safe(&ctl->arena, toc_str_of(address)));
    request.service = toc_arena_text(&ctl->arena, toc_str_of(service));
    st = ctl_call_address(ctl, address, &grpc__health__v1__health__descriptor,
                          "Check", &request.base,
                          ctl->timeout_ms > 0 ? ctl->timeout_ms
                                              : HEALTH_TIMEOUT_MS,
                          &reply, &error);
    if (st != TOC_OK)
        return ctl_fail(ctl, ctl_exit_of(st), NULL, "%s: %s: %s", address,
                        toc_status_text(st),
                        ctl_safe(&ctl->arena, toc_str_of(error.msg)));
    answer = (Grpc__Health__V1__HealthCheckResponse *)reply;
    fprintf(ctl->out, "%s\n", status_text(answer->status));
    return answer->status ==
                   GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
               ? CTL_OK
               : CTL_FAILED;
}
