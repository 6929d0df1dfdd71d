# shellcheck shell=bash
# A private Kafka broker (KRaft, broker and controller in one process), run
# from its Maven artifacts. The jars are fetched once for all homes.

KAFKA_VERSION=4.1.0

kafka_java()
{
    if [[ -n ${JAVA_HOME:-} && -x $JAVA_HOME/bin/java ]]; then
        printf '%s' "$JAVA_HOME/bin/java"
    else
        command -v java
    fi
}

# A java of version 17 or newer?
java_good()
{
    local java text
    java=$(kafka_java) || return 1
    text=$("$java" -version 2>&1) || return 1
    [[ $text =~ version\ \"([0-9]+) ]] && ((BASH_REMATCH[1] >= 17))
}

kafka_libs()
{
    printf '%s/kafka-%s' "$TOC_CACHE" "$KAFKA_VERSION"
}

kafka_fetch()
{
    local libs log=$TOC_HOME/log/kafka-fetch.log start
    libs=$(kafka_libs)
    [[ ! -d $libs ]] || return 0
    mkdir -p -- "$TOC_CACHE"
    exec 8>>"$TOC_CACHE/.kafka.lock"
    flock -n 8 || {
        say "another toc fetches Kafka, waiting for it"
        flock -w 600 8 || die "it did not end within 10 minutes"
    }
    if [[ ! -d $libs ]]; then
        start=$(now_ms)
        say "fetching  Kafka $KAFKA_VERSION with Maven (once, 43 MB)"
        run_shown "Maven" "$log" kafka_fetch_locked "$libs" || {
            show_log_end "$log"
            die "Maven could not fetch Kafka: is its repository reachable?"
        }
        say "fetched   Kafka ($(seconds_since "$start") s)"
    fi
    exec 8>&-
}

# Maven keeps its files in the home that the system knows for this user; in a
# container there may be none.
kafka_maven_options()
{
    local home
    home=$(getent passwd "$EUID" | cut -d: -f6) || true
    if [[ ! -w $home ]]; then
        printf -- '-Dmaven.repo.local=%s\n' "$TOC_CACHE/maven"
    fi
}

kafka_fetch_locked()
{
    local libs=$1 work
    local -a options
    mapfile -t options < <(kafka_maven_options)
    work=$(mktemp -d -- "$TOC_CACHE/kafka.XXXXXX") || return 1
    # Maven gets a copy of the pom: it must write nothing into the checkout
    if cp -- "$LOCAL_DIR/kafka/pom.xml" "$work/" &&
        (cd -- "$work" && timeout 900 mvn -q -B dependency:copy-dependencies \
            -DoutputDirectory=libs ${options[@]+"${options[@]}"}) &&
        [[ -f $work/libs/kafka_2.13-$KAFKA_VERSION.jar ]]; then
        chmod -R a+rX -- "$work/libs"
        mv -T -- "$work/libs" "$libs"
        rm -rf -- "$work"
        return 0
    fi
    rm -rf -- "$work"
    return 1
}

# Paths are relative to the broker's folder: nothing to escape in them.
kafka_write_config()
{
    cat >"$TOC_HOME/kafka/server.properties" <<PROPERTIES
# Written by toc at every start; change deploy/local/lib/kafka.sh instead.
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:${PORTS[KAFKA_CONTROLLER]}
listeners=PLAINTEXT://127.0.0.1:${PORTS[KAFKA]},CONTROLLER://127.0.0.1:${PORTS[KAFKA_CONTROLLER]}
advertised.listeners=PLAINTEXT://127.0.0.1:${PORTS[KAFKA]}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
log.dirs=data

# topics are made on purpose, with a number of partitions that is recorded
auto.create.topics.enable=false
default.replication.factor=1
min.insync.replicas=1
log.retention.hours=24
log.segment.bytes=134217728

# one broker
offsets.topic.num.partitions=4
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.segment.bytes=1048576
share.coordinator.state.topic.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1

# an executor that dies must be replaced within three seconds
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000

# after a kill -9 the broker registers again only when its old session is over
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500

# a small machine
num.network.threads=2
num.io.threads=4
log.cleaner.dedupe.buffer.size=16777216
PROPERTIES
}

# In the broker's folder, where data and server.properties lie.
kafka_format()
{
    cd -- "$TOC_HOME/kafka" || return 1
    "$(kafka_java)" -Xmx256m -XX:TieredStopAtLevel=1 -cp "$(kafka_libs)/*" \
        kafka.tools.StorageTool format -t "$(kafka_cluster_id)" \
        -c server.properties
}

# 16 random bytes in base64url; the tool takes no id that looks like an option
kafka_cluster_id()
{
    local id
    id=$(head -c 16 /dev/urandom | base64 -w0 | tr '+/' '-_')
    printf '%s' "${id:0:22}" | sed 's/^-/A/'
}

kafka_prepare()
{
    local log
    log=$(log_of kafka)
    mkdir -p -- "$TOC_HOME/kafka"
    kafka_write_config
    [[ ! -f $TOC_HOME/kafka/data/meta.properties ]] || return 0
    rm -rf -- "$TOC_HOME/kafka/data"
    run_shown "Kafka's storage" "$log" kafka_format || {
        show_log_end "$log"
        die "could not format Kafka's storage in $TOC_HOME/kafka"
    }
}

# A small broker that lives for a while: the second compiler and a parallel
# collector would take a third of a core for its first minutes, and from the
# processes beside it.
kafka_start()
{
    kafka_fetch
    port_ensure KAFKA kafka
    port_ensure KAFKA_CONTROLLER kafka
    kafka_prepare
    proc_start kafka "$TOC_HOME/kafka" env LC_ALL=C.UTF-8 "$(kafka_java)" \
        -Xmx512m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC \
        -XX:+ExitOnOutOfMemoryError -Djava.awt.headless=true \
        -Dorg.slf4j.simpleLogger.showDateTime=true \
        -Dorg.slf4j.simpleLogger.dateTimeFormat="yyyy-MM-dd'T'HH:mm:ss.SSSZ" \
        -Dorg.slf4j.simpleLogger.showThreadName=false \
        -cp "$(kafka_libs)/*" kafka.Kafka server.properties
}

# Asks for the broker's metadata as a client does (Metadata request, version
# 4: no topics, no auto-creation) and wants at least one broker in the answer.
kafka_ready()
{
    timeout 3 bash -c '
        exec 3<>"/dev/tcp/127.0.0.1/$1" || exit 1
        # size 18 | key 3, version 4 | correlation 7 | client id "toc" |
        # 0 topics | no auto-creation
        printf "\0\0\0\x12\0\3\0\4\0\0\0\7\0\3toc\0\0\0\0\0" >&3
        # size, correlation, throttle time, number of brokers
        set -- $(head -c 16 <&3 | od -An -v -tu1)
        [ $# -eq 16 ] && [ "${16}" -ge 1 ]
    ' kafka_ready "${PORTS[KAFKA]}"
}

kafka_wait()
{
    proc_wait_ready kafka 60 "see the log above; Kafka needs 512 MB of memory \
and java 17 (toc destroy starts afresh)" \
        kafka_ready
}

kafka_address()
{
    printf '127.0.0.1:%s' "${PORTS[KAFKA]:-?}"
}
