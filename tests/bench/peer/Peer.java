/*
 * The peer: Kafka Streams, exactly_once_v2, doing the job of a worker whose turns do nothing. For each
 * record of the input its state store takes a claim and then an end (two records of its changelog topic),
 * and an outcome goes to the output topic; all three in one transaction, since Streams cannot commit
 * between two records. Called by tests/bench/compare; `java -cp … Peer --help`.
 */
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

public final class Peer {
    static final int PARTITIONS = 4;
    static final int WARM_SECONDS = 3; // published first and not counted: the virtual machine compiles
    static final String USAGE = String.join("\n",
        "usage: Peer --brokers LIST [--turns N] [--rate N --seconds N] [--commit MS] [--sizes A,B,C,D]",
        "",
        "  --turns N    a backlog of so many records is drained (20000)",
        "  --rate N     instead: so many records a second, and how long each waits for its commit",
        "  --seconds N  for so long (5)",
        "  --commit MS  commit.interval.ms (100, the default of exactly_once_v2)",
        "  --sizes      bytes of a handoff, claim, end and outcome (1060,1800,730,530)",
        "",
        "Prints one line of JSON.");

    static String brokers;
    static int turns = 20000;
    static int rate;
    static int seconds = 5;
    static int commitMs = 100;
    static int[] sizes = {1060, 1800, 730, 530};
    static final String id = "peer-" + UUID.randomUUID();
    static final String handoff = id + ".handoff";
    static final String outcomes = id + ".outcomes";

    /* As compressible as what tests/bench/eos_loop.c writes: a third is hexadecimal and new in each record. */
    static byte[] value(int size, String key) {
        byte[] bytes = new byte[size];
        long state = key.hashCode() * 0x9e3779b97f4a7c15L;
        Arrays.fill(bytes, (byte) 'x');
        for (int i = 0; i < size / 3; i++) {
            state = state * 6364136223846793005L + 1442695040888963407L;
            bytes[i] = (byte) "0123456789abcdef".charAt((int) (state >>> 60));
        }
        return bytes;
    }

    static String key(int number) {
        return String.format("%016x%016x", number * 0x9e3779b97f4a7c15L, number);
    }

    static final class Work implements Processor<String, byte[], String, byte[]> {
        private ProcessorContext<String, byte[]> context;
        private KeyValueStore<String, byte[]> store;

        @Override
        public void init(ProcessorContext<String, byte[]> context) {
            this.context = context;
            store = context.getStateStore("turns");
        }

        @Override
        public void process(Record<String, byte[]> record) {
            store.put(record.key(), value(sizes[1], record.key()));
            store.put(record.key(), value(sizes[2], record.key()));
            context.forward(record.withValue(value(sizes[3], record.key())));
        }
    }

    static KafkaStreams streams(Path dir) {
        Properties settings = new Properties();
        settings.put(StreamsConfig.APPLICATION_ID_CONFIG, id);
        settings.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, brokers);
        settings.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        settings.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, commitMs);
        settings.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 1);
        settings.put(StreamsConfig.STATE_DIR_CONFIG, dir.toString());
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class);
        settings.put(StreamsConfig.consumerPrefix("auto.offset.reset"), "earliest");
        settings.put(StreamsConfig.producerPrefix("compression.type"), "zstd");
        Topology topology = new Topology();
        topology.addSource("handoffs", handoff);
        topology.addProcessor("work", Work::new, "handoffs");
        topology.addStateStore(
            Stores.keyValueStoreBuilder(Stores.inMemoryKeyValueStore("turns"), Serdes.String(), Serdes.ByteArray())
                .withLoggingEnabled(Map.of()), "work");
        topology.addSink("outcomes", outcomes, "work");
        return new KafkaStreams(topology, settings);
    }

    static KafkaProducer<String, byte[]> publisher() {
        return new KafkaProducer<>(Map.of("bootstrap.servers", brokers, "compression.type", "zstd", "linger.ms", 0,
            "max.in.flight.requests.per.connection", 1), new StringSerializer(), new ByteArraySerializer());
    }

    static KafkaConsumer<String, byte[]> reader() {
        KafkaConsumer<String, byte[]> reader = new KafkaConsumer<>(
            Map.of("bootstrap.servers", brokers, "isolation.level", "read_committed", "auto.offset.reset", "earliest"),
            new StringDeserializer(), new ByteArrayDeserializer());
        List<TopicPartition> all =
            Stream.iterate(0, p -> p + 1).limit(PARTITIONS).map(p -> new TopicPartition(outcomes, p)).toList();
        reader.assign(all);
        reader.seekToBeginning(all);
        return reader;
    }

    /* Reads outcomes until there are so many; reachedNs: when each was seen. */
    static void await(int count, long[] reachedNs) {
        long stalled = System.nanoTime();
        try (KafkaConsumer<String, byte[]> reader = reader()) {
            for (int seen = 0; seen < count;) {
                var records = reader.poll(Duration.ofMillis(100));
                long now = System.nanoTime();
                for (ConsumerRecord<String, byte[]> record : records) {
                    reachedNs[Integer.parseInt(record.key().substring(16), 16)] = now;
                    seen++;
                }
                if (!records.isEmpty()) {
                    stalled = now;
                } else if (now - stalled > 60_000_000_000L) {
                    throw new IllegalStateException("no outcome came for 60 s; " + seen + " of " + count);
                }
            }
        }
    }

    static void awaitRunning(KafkaStreams streams) throws InterruptedException {
        CountDownLatch running = new CountDownLatch(1);
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                running.countDown();
            }
        });
        streams.start();
        running.await();
    }

    static double drain(KafkaStreams streams) throws Exception {
        try (KafkaProducer<String, byte[]> publisher = publisher()) {
            for (int i = 0; i < turns; i++) {
                publisher.send(new ProducerRecord<>(handoff, key(i), value(sizes[0], key(i))));
            }
            publisher.flush();
        }
        awaitRunning(streams);
        long begin = System.nanoTime();
        await(turns, new long[turns]);
        return turns * 1e9 / (System.nanoTime() - begin);
    }

    static double[] waits(KafkaStreams streams) throws Exception {
        int warm = rate * WARM_SECONDS;
        int all = rate * seconds + warm;
        long[] due = new long[all];
        long[] reached = new long[all];
        awaitRunning(streams);
        Thread thread = new Thread(() -> {
            try (KafkaProducer<String, byte[]> publisher = publisher()) {
                publisher.partitionsFor(handoff);
                long begin = System.nanoTime();
                for (int i = 0; i < all; i++) {
                    due[i] = begin + i * (1_000_000_000L / rate);
                    for (long left; (left = due[i] - System.nanoTime()) > 0;) {
                        Thread.sleep(left / 1_000_000, (int) (left % 1_000_000));
                    }
                    publisher.send(new ProducerRecord<>(handoff, key(i), value(sizes[0], key(i)))).get();
                }
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
        await(all, reached);
        thread.join();
        long[] waited = new long[all - warm];
        for (int i = 0; i < waited.length; i++) {
            waited[i] = reached[i + warm] - due[i + warm];
        }
        Arrays.sort(waited);
        return new double[] {waited[waited.length / 2] / 1e6, waited[waited.length * 99 / 100] / 1e6};
    }

    static void parse(String[] args) {
        for (int i = 0; i < args.length; i++) {
            if (args[i].equals("--help")) {
                System.out.println(USAGE);
                System.exit(0);
            }
            if (i + 1 == args.length) {
                break;
            }
            String word = args[++i];
            switch (args[i - 1]) {
                case "--brokers" -> brokers = word;
                case "--turns" -> turns = Integer.parseInt(word);
                case "--rate" -> rate = Integer.parseInt(word);
                case "--seconds" -> seconds = Integer.parseInt(word);
                case "--commit" -> commitMs = Integer.parseInt(word);
                case "--sizes" -> sizes = Arrays.stream(word.split(",")).mapToInt(Integer::parseInt).toArray();
                default -> brokers = null;
            }
        }
        if (brokers == null || sizes.length != 4) {
            System.err.println(USAGE);
            System.exit(2);
        }
    }

    public static void main(String[] args) throws Exception {
        parse(args);
        Path dir = Files.createTempDirectory("baton-peer-");
        double rateReached = 0;
        double[] waited = {0, 0};
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", brokers))) {
            admin.createTopics(Stream.of(handoff, outcomes).map(name -> new NewTopic(name, PARTITIONS, (short) 1)).toList())
                .all().get();
            KafkaStreams streams = streams(dir);
            try {
                if (rate > 0) {
                    waited = waits(streams);
                } else {
                    rateReached = drain(streams);
                }
            } finally {
                streams.close(Duration.ofSeconds(10));
                Collection<String> ours =
                    admin.listTopics().names().get().stream().filter(name -> name.startsWith(id)).toList();
                admin.deleteTopics(ours).all().get();
            }
        } finally {
            try (Stream<Path> files = Files.walk(dir)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
        System.out.printf("{\"commit_interval_ms\":%d,\"turns_per_s\":%.0f,\"p50_ms\":%.2f,\"p99_ms\":%.2f}%n", commitMs,
            rateReached, waited[0], waited[1]);
    }
}
