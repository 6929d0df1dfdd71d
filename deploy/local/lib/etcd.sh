# shellcheck shell=bash
# A private etcd of one member.

etcd_start()
{
    local peer client
    port_ensure ETCD etcd
    port_ensure ETCD_PEER etcd
    client=http://127.0.0.1:${PORTS[ETCD]}
    peer=http://127.0.0.1:${PORTS[ETCD_PEER]}
    mkdir -p -- "$TOC_HOME/etcd"
    chmod 700 "$TOC_HOME/etcd"
    # the variable is for machines that this etcd calls unsupported (arm64)
    proc_start etcd "$TOC_HOME/etcd" env "ETCD_UNSUPPORTED_ARCH=$(etcd_arch)" \
        etcd --name toc-local --data-dir "$TOC_HOME/etcd/data" \
        --listen-client-urls "$client" --advertise-client-urls "$client" \
        --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" \
        --initial-cluster "toc-local=$peer" \
        --auto-compaction-retention=1h --logger=zap --log-outputs=stderr
}

etcd_arch()
{
    case $(uname -m) in
        aarch64) printf 'arm64' ;;
        *) printf '' ;;
    esac
}

etcd_ready()
{
    local answer
    answer=$(curl -q -s --noproxy '*' --max-time 2 \
        "http://127.0.0.1:${PORTS[ETCD]}/health") || return 1
    [[ $answer == *'"health":"true"'* ]]
}

etcd_wait()
{
    proc_wait_ready etcd 30 "see the log above; toc destroy starts afresh" \
        etcd_ready
}

etcd_address()
{
    printf '127.0.0.1:%s' "${PORTS[ETCD]:-?}"
}
