#!/usr/bin/python3
"""A gRPC peer that shares no code with ours: grpcio, without generated code.

usage: peer.py HOST:PORT CASE

Messages are built from what server reflection tells; reflection itself and
health are read and written by hand, field by field. Prints what the test reads
(see test_peer.c) and exits 0 when all was as it should be.
"""
import socket
import sys
import threading

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

TIMEOUT = 30


# --- wire format by hand

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, content):
    if isinstance(content, int):
        return varint(number << 3) + varint(content)
    if isinstance(content, str):
        content = content.encode()
    return varint(number << 3 | 2) + varint(len(content)) + content


def fields(data):
    """[(number, value)] of a message."""
    def read(at):
        value = shift = 0
        while True:
            value |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if data[at - 1] < 128:
                return value, at
    at, found = 0, []
    while at < len(data):
        key, at = read(at)
        value, at = read(at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        else:
            assert key & 7 == 0, f"wire type of {key}"
        found.append((key >> 3, value))
    return found


def one(data, number):
    values = [value for n, value in fields(data) if n == number]
    assert len(values) == 1, f"field {number}: {values}"
    return values[0]


# --- asking

def raw(channel, kind, method):
    return getattr(channel, kind)(method, request_serializer=bytes,
                                  response_deserializer=bytes)


def ask(channel, questions, version="v1"):
    """The answers of one reflection stream."""
    stream = raw(channel, "stream_stream",
                 f"/grpc.reflection.{version}.ServerReflection/"
                 "ServerReflectionInfo")
    answers = list(stream(iter(questions), timeout=TIMEOUT))
    assert len(answers) == len(questions)
    for question, answer in zip(questions, answers):
        assert one(answer, 2) == question, "original_request"
    return answers


def files(answer):
    """FileDescriptorProtos in a reflection answer."""
    out = []
    for number, value in fields(one(answer, 4)):
        assert number == 1
        out.append(descriptor_pb2.FileDescriptorProto.FromString(value))
    return out


def error_code(answer):
    return one(one(answer, 7), 1)


class Schema:
    def __init__(self, channel, symbols):
        self.pool = descriptor_pool.DescriptorPool()
        self.factory = message_factory.MessageFactory(self.pool)
        waiting = {}
        for answer in ask(channel, [field(4, s) for s in symbols]):
            waiting.update((f.name, f) for f in files(answer))

        def add(name):
            if name in waiting:
                file = waiting.pop(name)
                for dependency in file.dependency:
                    add(dependency)
                self.pool.Add(file)
        for name in list(waiting):
            add(name)

    def type(self, name):
        return self.factory.GetPrototype(
            self.pool.FindMessageTypeByName(name))

    def method(self, channel, service, name):
        found = self.pool.FindServiceByName(service).FindMethodByName(name)
        output = self.factory.GetPrototype(found.output_type)
        return channel.unary_unary(
            f"/{service}/{name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=output.FromString)


def failure(call, *args, **kwargs):
    try:
        call(*args, timeout=TIMEOUT, **kwargs)
    except grpc.RpcError as error:
        return error
    raise AssertionError("no error")


def expect_code(error, code):
    assert error.code() == code, f"{error.code()}: {error.details()}"


# --- cases

def case_list(channel, _):
    for version in "v1", "v1alpha":
        answer, = ask(channel, [field(7, "")], version)
        names = [one(value, 1).decode() for _, value in fields(one(answer, 6))]
        assert sorted(names) == [
            "grpc.health.v1.Health",
            "grpc.reflection.v1.ServerReflection",
            "grpc.reflection.v1alpha.ServerReflection",
            "toc.v1.TimeoutHandler"], names


def case_describe(channel, _):
    answers = ask(channel, [
        field(1, "me") + field(3, "toc/v1/types.proto"),
        field(4, "toc.v1.TimeoutHandler"),
        field(4, "toc.v1.TimeoutHandler"),
        field(4, "toc.v1.TimeoutHandler.OnTimeout"),
        field(4, "toc.v1.Nothing"),
        field(3, "nothing.proto"),
        field(5, field(1, "toc.v1.Task") + field(2, 7)),
        field(6, "toc.v1.Task"),
        field(6, "toc.v1.Nothing"),
        b"",
    ])
    assert one(answers[0], 1) == b"me"
    first = [f.name for f in files(answers[0])]
    assert first[0] == "toc/v1/types.proto"
    assert "google/protobuf/timestamp.proto" in first
    again = [f.name for f in files(answers[1])]
    # Imports that the stream has had are not sent again; what is asked for is.
    assert again == ["toc/v1/handler.proto"], again
    assert [f.name for f in files(answers[2])] == again
    assert [f.name for f in files(answers[3])] == again
    assert error_code(answers[4]) == 5
    assert error_code(answers[5]) == 5
    assert error_code(answers[6]) == 5
    assert one(one(answers[7], 5), 1) == b"toc.v1.Task"
    assert error_code(answers[8]) == 5
    assert error_code(answers[9]) == 12


def case_call(channel, _):
    schema = Schema(channel, ["toc.v1.TimeoutHandler", "google.rpc.Status",
                              "google.rpc.BadRequest"])
    method = schema.method(channel, "toc.v1.TimeoutHandler", "OnTimeout")
    request = schema.type("toc.v1.OnTimeoutRequest")(
        task_id="echo", payload=b"hi there")
    assert method(request, timeout=TIMEOUT).message == "hi there"
    assert method(request, timeout=TIMEOUT,
                  compression=grpc.Compression.Gzip).message == "hi there"
    request.task_id = "refuse"
    error = failure(method, request)
    expect_code(error, grpc.StatusCode.INVALID_ARGUMENT)
    trailers = dict(error.trailing_metadata())
    status = schema.type("google.rpc.Status").FromString(
        trailers["grpc-status-details-bin"])
    assert status.code == 3 and status.message == error.details()
    bad = schema.type("google.rpc.BadRequest")()
    assert status.details[0].type_url.endswith("/google.rpc.BadRequest")
    bad.ParseFromString(status.details[0].value)
    assert bad.field_violations[0].field == "payload"
    request.task_id = "huge"  # more than trailers hold
    expect_code(failure(method, request), grpc.StatusCode.INVALID_ARGUMENT)


def case_odd(channel, address):
    """Clients that do what ours cannot."""
    method = "/toc.v1.TimeoutHandler/OnTimeout"
    echo = field(1, "echo") + field(7, "x")
    # No message at all, and several.
    stream = raw(channel, "stream_unary", method)
    expect_code(failure(stream, iter([])), grpc.StatusCode.INVALID_ARGUMENT)
    assert one(stream(iter([echo]), timeout=TIMEOUT), 3) == b"x"
    # A method of a known and of an unknown service; a stream there too.
    for path in ("/toc.v1.TimeoutHandler/Nothing", "/a.B/C"):
        error = failure(raw(channel, "unary_unary", path), echo)
        expect_code(error, grpc.StatusCode.UNIMPLEMENTED)
        assert path in error.details(), error.details()
        error = failure(raw(channel, "stream_unary", path), iter([echo] * 3))
        expect_code(error, grpc.StatusCode.UNIMPLEMENTED)
    # The request's id comes back, also with a failure.
    for body in echo, field(1, "refuse"), b"\xff":
        answer, call = None, raw(channel, "unary_unary", method)
        try:
            answer, call = call.with_call(body, timeout=TIMEOUT, metadata=[
                ("x-request-id", "id-17")])
        except grpc.RpcError as error:
            call = error
        assert ("x-request-id", "id-17") in list(call.trailing_metadata())
    # 9 MiB are too much.
    error = failure(raw(channel, "unary_unary", method),
                    field(7, b"x" * (9 << 20)))
    expect_code(error, grpc.StatusCode.RESOURCE_EXHAUSTED)
    # What is no gRPC, or no HTTP at all, harms nobody.
    host, port = address.rsplit(":", 1)
    for noise in (b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 100,
                  b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff" * 1000, b""):
        with socket.create_connection((host, int(port)), TIMEOUT) as plain:
            try:
                plain.sendall(noise)
                plain.shutdown(socket.SHUT_WR)
                while plain.recv(65536):
                    pass
            except OSError:
                pass  # closed on us: as good as an answer
    assert one(raw(channel, "unary_unary", method)(echo, timeout=TIMEOUT),
               3) == b"x"


def check(channel, service):
    call = raw(channel, "unary_unary", "/grpc.health.v1.Health/Check")
    return one(call(field(1, service), timeout=TIMEOUT), 1)


def case_serving(channel, _):
    assert check(channel, "") == 1
    assert check(channel, "toc.v1.TimeoutHandler") == 1
    call = raw(channel, "unary_unary", "/grpc.health.v1.Health/Check")
    expect_code(failure(call, field(1, "toc.v1.Nothing")),
                grpc.StatusCode.NOT_FOUND)


def case_not_serving(channel, _):
    assert check(channel, "") == 2
    assert check(channel, "toc.v1.TimeoutHandler") == 2


def case_watch(channel, _):
    """Prints each status; ends when the server does."""
    watch = raw(channel, "unary_stream", "/grpc.health.v1.Health/Watch")
    unknown = watch(field(1, "toc.v1.Nothing"), timeout=TIMEOUT)
    assert one(next(unknown), 1) == 3
    cancelled = [watch(field(1, ""), timeout=TIMEOUT) for _ in range(20)]
    for one_of_them in cancelled:
        next(one_of_them)
        one_of_them.cancel()
    stream = watch(field(1, "toc.v1.TimeoutHandler"), timeout=TIMEOUT)
    try:
        for answer in stream:
            print(one(answer, 1), flush=True)
    except grpc.RpcError as error:
        expect_code(error, grpc.StatusCode.UNAVAILABLE)
    expect_code(failure(lambda timeout: next(unknown)),
                grpc.StatusCode.UNAVAILABLE)
    print("end", flush=True)


def case_reflect_open(channel, _):
    """Reflection streams that stay open: one ends with the server."""
    method = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
    hold = threading.Event()

    def questions():
        yield field(7, "")
        hold.wait(TIMEOUT)
    streams = [raw(channel, "stream_stream", method)(
        questions(), timeout=TIMEOUT) for _ in range(5)]
    for stream in streams:
        next(stream)
    for stream in streams[1:]:
        stream.cancel()
    bad = raw(channel, "stream_stream", method)
    expect_code(failure(lambda timeout: next(bad(
        iter([b"\xff\xff"]), timeout=timeout))),
        grpc.StatusCode.INVALID_ARGUMENT)
    print("open", flush=True)
    expect_code(failure(lambda timeout: next(streams[0])),
                grpc.StatusCode.UNAVAILABLE)
    hold.set()
    print("end", flush=True)


def main():
    address, case = sys.argv[1:]
    with grpc.insecure_channel(
            address, options=[("grpc.enable_http_proxy", 0)]) as channel:
        globals()["case_" + case](channel, address)


main()
