/* tocctl: the command line of TOC. */
#include "admin/ctl/ctl.h"

#include "common/clock/os/clock_os.h"
#include "common/rpc/client.h"

#include <unistd.h>

/* Into a pipe in one piece, so that `tocctl describe X | grep -q Y` does not
 * end by a broken pipe; to a terminal line by line. */
#define PIPE_BUFFER 65536

/* Made at the first call, so that help needs no gRPC. */
struct transport {
    const struct toc_clock *clk;
    struct toc_rpc_client *client;
};

static enum toc_status
call(void *arg, const char *address, const ProtobufCServiceDescriptor *service,
     const char *method, const ProtobufCMessage *request, int64_t timeout_ms,
     struct toc_arena *arena, ProtobufCMessage **ret_reply,
     struct toc_str *ret_details, struct toc_error *reterr)
{
    struct transport *transport = arg;

    if (transport->client == NULL)
        transport->client = toc_rpc_client_new(
            &(struct toc_rpc_client_options){.clock = transport->clk});
    return toc_rpc_call(transport->client, address, service, method, request,
                        timeout_ms, arena, ret_reply, ret_details, reterr);
}

int
main(int argc, char **argv)
{
    struct transport transport = {.clk = toc_clock_os()};
    struct ctl ctl = {
        .in = stdin,
        .out = stdout,
        .err = stderr,
        .clk = transport.clk,
        .transport = call,
        .transport_arg = &transport,
        .sleep_until = toc_clock_os_sleep_until,
    };
    enum ctl_exit end;

    if (isatty(STDOUT_FILENO) == 0)
        (void)setvbuf(stdout, NULL, _IOFBF, PIPE_BUFFER);
    end = ctl_run(&ctl, argc, argv);
    if (transport.client != NULL)
        toc_rpc_client_free(transport.client);
    ctl_done(&ctl);
    return (int)end;
}
