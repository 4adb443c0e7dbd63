"""A Kafka broker from outside: librdkafka by ctypes, no line of Baton. The counterpart of locallog.py.

Reads what topics hold, and writes what Baton would never write. Called by host.py and by tests of
rights (which acls.py gives). One client of each kind for a process and broker; calls are made one at a time.
"""
import ctypes as c
import threading
import time

from proof import Record, partition_of

PRODUCER, CONSUMER = 0, 1
PARTITION_EOF, TIMED_OUT, UNKNOWN_TOPIC, UNKNOWN_PARTITION = -191, -185, 3, -190
VALUE, KEY, TOPIC, PARTITION, FLAGS, HEADERS = 4, 5, 1, 3, 7, 10  # rd_kafka_vtype_t
COPY = 2


class Message(c.Structure):
    _fields_ = [("err", c.c_int), ("rkt", c.c_void_p), ("partition", c.c_int32), ("payload", c.c_void_p),
                ("len", c.c_size_t), ("key", c.c_void_p), ("key_len", c.c_size_t), ("offset", c.c_int64),
                ("private", c.c_void_p)]


class TopicPartition(c.Structure):
    _fields_ = [("topic", c.c_char_p), ("partition", c.c_int32), ("offset", c.c_int64), ("metadata", c.c_void_p),
                ("metadata_size", c.c_size_t), ("opaque", c.c_void_p), ("err", c.c_int), ("private", c.c_void_p)]


class TopicPartitions(c.Structure):
    _fields_ = [("count", c.c_int), ("size", c.c_int), ("elements", c.POINTER(TopicPartition))]


class MetadataTopic(c.Structure):
    _fields_ = [("topic", c.c_char_p), ("partition_count", c.c_int), ("partitions", c.c_void_p), ("err", c.c_int)]


class Metadata(c.Structure):
    _fields_ = [("broker_count", c.c_int), ("brokers", c.c_void_p), ("topic_count", c.c_int),
                ("topics", c.POINTER(MetadataTopic)), ("broker_id", c.c_int32), ("broker_name", c.c_char_p)]


class Memory(c.Structure):
    _fields_ = [("ptr", c.c_void_p), ("size", c.c_size_t)]


class Value(c.Union):
    _fields_ = [("text", c.c_char_p), ("number", c.c_int32), ("memory", Memory), ("pointer", c.c_void_p), ("pad", c.c_char * 64)]


class Argument(c.Structure):
    _fields_ = [("kind", c.c_int), ("value", Value)]


DELIVERED = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(Message), c.c_void_p)


def load():
    lib = c.CDLL("librdkafka.so.1")
    for name, result, arguments in (
            ("conf_new", c.c_void_p, []),
            ("conf_set", c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p, c.c_char_p, c.c_size_t]),
            ("conf_set_dr_msg_cb", None, [c.c_void_p, DELIVERED]),
            ("new", c.c_void_p, [c.c_int, c.c_void_p, c.c_char_p, c.c_size_t]),
            ("destroy_flags", None, [c.c_void_p, c.c_int]),
            ("err2str", c.c_char_p, [c.c_int]),
            ("poll", c.c_int, [c.c_void_p, c.c_int]),
            ("poll_set_consumer", c.c_int, [c.c_void_p]),
            ("consumer_poll", c.POINTER(Message), [c.c_void_p, c.c_int]),
            ("message_destroy", None, [c.POINTER(Message)]),
            ("message_timestamp", c.c_int64, [c.POINTER(Message), c.POINTER(c.c_int)]),
            ("message_headers", c.c_int, [c.POINTER(Message), c.POINTER(c.c_void_p)]),
            ("header_get_all", c.c_int, [c.c_void_p, c.c_size_t, c.POINTER(c.c_char_p), c.POINTER(c.c_void_p), c.POINTER(c.c_size_t)]),
            ("headers_new", c.c_void_p, [c.c_size_t]),
            ("header_add", c.c_int, [c.c_void_p, c.c_char_p, c.c_ssize_t, c.c_char_p, c.c_ssize_t]),
            ("assign", c.c_int, [c.c_void_p, c.POINTER(TopicPartitions)]),
            ("topic_partition_list_new", c.POINTER(TopicPartitions), [c.c_int]),
            ("topic_partition_list_add", c.POINTER(TopicPartition), [c.POINTER(TopicPartitions), c.c_char_p, c.c_int32]),
            ("topic_partition_list_destroy", None, [c.POINTER(TopicPartitions)]),
            ("committed", c.c_int, [c.c_void_p, c.POINTER(TopicPartitions), c.c_int]),
            ("query_watermark_offsets", c.c_int, [c.c_void_p, c.c_char_p, c.c_int32, c.POINTER(c.c_int64), c.POINTER(c.c_int64), c.c_int]),
            ("topic_new", c.c_void_p, [c.c_void_p, c.c_char_p, c.c_void_p]),
            ("topic_destroy", None, [c.c_void_p]),
            ("topic_name", c.c_char_p, [c.c_void_p]),
            ("metadata", c.c_int, [c.c_void_p, c.c_int, c.c_void_p, c.POINTER(c.POINTER(Metadata)), c.c_int]),
            ("metadata_destroy", None, [c.POINTER(Metadata)]),
            ("produceva", c.c_void_p, [c.c_void_p, c.POINTER(Argument), c.c_size_t]),
            ("error_string", c.c_char_p, [c.c_void_p]),
            ("init_transactions", c.c_void_p, [c.c_void_p, c.c_int]),
            ("queue_new", c.c_void_p, [c.c_void_p]),
            ("queue_destroy", None, [c.c_void_p]),
            ("queue_poll", c.c_void_p, [c.c_void_p, c.c_int]),
            ("event_destroy", None, [c.c_void_p]),
            ("event_error_string", c.c_char_p, [c.c_void_p]),
            ("event_error", c.c_int, [c.c_void_p]),
            ("DeleteTopic_new", c.c_void_p, [c.c_char_p]),
            ("DeleteTopic_destroy", None, [c.c_void_p]),
            ("DeleteTopics", None, [c.c_void_p, c.POINTER(c.c_void_p), c.c_size_t, c.c_void_p, c.c_void_p]),
            ("NewTopic_new", c.c_void_p, [c.c_char_p, c.c_int, c.c_int, c.c_char_p, c.c_size_t]),
            ("NewTopic_set_config", c.c_int, [c.c_void_p, c.c_char_p, c.c_char_p]),
            ("NewTopic_destroy", None, [c.c_void_p]),
            ("CreateTopics", None, [c.c_void_p, c.POINTER(c.c_void_p), c.c_size_t, c.c_void_p, c.c_void_p])):
        function = getattr(lib, "rd_kafka_" + name)
        function.restype, function.argtypes = result, arguments
    return lib


def bytes_at(pointer, length):
    return None if pointer is None else c.string_at(pointer, length)


class Broken(Exception):
    """What librdkafka refused, in its words."""


class Client:
    """One handle of librdkafka."""

    def __init__(self, lib, kind, settings):
        self.lib, self.delivered = lib, []
        text = c.create_string_buffer(512)
        conf = lib.rd_kafka_conf_new()
        for name, value in settings.items():
            if lib.rd_kafka_conf_set(conf, name.encode(), str(value).encode(), text, 512) != 0:
                raise Broken(text.value.decode())
        self.callback = DELIVERED(lambda rk, message, opaque: self.delivered.append(
            (message[0].err, message[0].partition, message[0].offset)))
        if kind == PRODUCER:
            lib.rd_kafka_conf_set_dr_msg_cb(conf, self.callback)
        self.rk = lib.rd_kafka_new(kind, conf, text, 512)
        if not self.rk:
            raise Broken(text.value.decode())
        if kind == CONSUMER:
            lib.rd_kafka_poll_set_consumer(self.rk)

    def close(self):
        self.lib.rd_kafka_destroy_flags(self.rk, 8)  # no waiting for a group


class Clients:
    """The handles of one process to one broker under one user."""

    known, guard = {}, threading.Lock()

    def __init__(self, brokers, more):
        self.lib, self.lock, self.made = load(), threading.RLock(), {}
        self.settings = {"bootstrap.servers": brokers, "socket.nagle.disable": "true", "log_level": 0,
                         "reconnect.backoff.max.ms": 1000}
        self.settings.update(more)

    @classmethod
    def of(cls, brokers, **more):
        key = (brokers, tuple(sorted(more.items())))
        with cls.guard:
            if key not in cls.known:
                cls.known[key] = cls(brokers, more)
            return cls.known[key]

    def get(self, what, kind, **settings):
        if what not in self.made:
            self.made[what] = Client(self.lib, kind, dict(self.settings, **{name.replace("_", "."): value
                                                                           for name, value in settings.items()}))
        return self.made[what]

    @property
    def reader(self):
        return self.get("reader", CONSUMER, group_id="outside", enable_auto_commit="false", enable_partition_eof="true",
                        isolation_level="read_committed", auto_offset_reset="earliest", fetch_wait_max_ms=10,
                        allow_auto_create_topics="false", fetch_error_backoff_ms=20)

    @property
    def writer(self):
        return self.get("writer", PRODUCER, linger_ms=0, message_timeout_ms=20000, retry_backoff_ms=20,
                        partitioner="murmur2", acks="all")

    def forget(self, what):
        client = self.made.pop(what, None)
        if client:
            client.close()


class KafkaLog:
    """The topics of a prefix on a broker; the same questions as LocalLog answers."""

    def __init__(self, brokers, prefix, patience=30, **settings):
        self.clients, self.prefix, self.patience = Clients.of(brokers, **settings), prefix, patience
        self.lib, self.path = self.clients.lib, ""

    def check(self, code, what):
        if code != 0:
            raise Broken(f"{what}: {self.lib.rd_kafka_err2str(code).decode()}")

    def mine(self, name):
        return name.startswith((self.prefix + ".", "dlq." + self.prefix + "."))

    # ---- topics ----

    def metadata(self, topic=None):
        """{name: number of partitions} of a topic, or of all. Asked by the handle that reads: who assigns
        a partition that its handle has not heard of waits for a second."""
        with self.clients.lock:
            client, answer = self.clients.reader, c.POINTER(Metadata)()
            handle = self.lib.rd_kafka_topic_new(client.rk, topic.encode(), None) if topic else None
            code = self.lib.rd_kafka_metadata(client.rk, 0 if topic else 1, handle, c.byref(answer), self.patience * 1000)
            if handle:
                self.lib.rd_kafka_topic_destroy(handle)
            self.check(code, "metadata")
            found = {}
            for i in range(answer[0].topic_count):
                one = answer[0].topics[i]
                if one.err == 0:
                    found[one.topic.decode()] = one.partition_count
            self.lib.rd_kafka_metadata_destroy(answer)
            return found

    def topics(self):
        return sorted(name for name in self.metadata() if self.mine(name))

    def partitions(self, topic):
        return self.metadata(topic)[topic]

    def listed(self, topic, partitions, offset=0):
        found = self.lib.rd_kafka_topic_partition_list_new(len(partitions))
        for number in partitions:
            self.lib.rd_kafka_topic_partition_list_add(found, topic.encode(), number)[0].offset = offset
        return found

    # ---- reading ----

    def records(self, topic, every=False):
        """Every committed record of a topic, by partition and offset; of a compacted one (turn log, run
        log) the newest of each key, as compaction leaves it, unless every one is asked for."""
        count = self.metadata(topic).get(topic)
        if count is None:
            return []
        with self.clients.lock:
            found = [one for one in self.read(topic, count) if not (one.key == b"~" and one.value is None)]  # a note (TOPICS.md)
        if not every and topic.startswith((self.prefix + ".turns.", self.prefix + ".runs")):
            newest = {(one.partition, one.key): one.offset for one in found}
            found = [one for one in found if newest[(one.partition, one.key)] == one.offset]
        return found

    def read(self, topic, count):
        client, found, left, said = self.clients.reader, [], set(range(count)), ""
        assignment = self.listed(topic, left)
        self.check(self.lib.rd_kafka_assign(client.rk, assignment), "assign")
        self.lib.rd_kafka_topic_partition_list_destroy(assignment)
        deadline = time.monotonic() + self.patience
        try:
            while left:
                message = self.lib.rd_kafka_consumer_poll(client.rk, 100)
                if message:
                    try:
                        if message[0].err == 0:
                            found.append(self.record(topic, message))
                        elif message[0].err == PARTITION_EOF:
                            left.discard(message[0].partition)
                        elif message[0].err in (UNKNOWN_TOPIC, UNKNOWN_PARTITION):
                            left.clear()
                        else:
                            said = f": {self.lib.rd_kafka_err2str(message[0].err).decode()}"
                    finally:
                        self.lib.rd_kafka_message_destroy(message)
                if time.monotonic() > deadline:
                    raise Broken(f"{topic}: the end of partitions {sorted(left)} was not reached{said}")
        finally:
            self.lib.rd_kafka_assign(client.rk, None)
        return sorted(found, key=lambda one: (one.partition, one.offset))

    def record(self, topic, message):
        headers, handle = [], c.c_void_p()
        if self.lib.rd_kafka_message_headers(message, c.byref(handle)) == 0:
            name, value, size = c.c_char_p(), c.c_void_p(), c.c_size_t()
            while self.lib.rd_kafka_header_get_all(handle, len(headers), c.byref(name), c.byref(value), c.byref(size)) == 0:
                headers.append((name.value.decode(), bytes_at(value.value, size.value)))
        one = message[0]
        return Record(topic, bytes_at(one.key, one.key_len), bytes_at(one.payload, one.len), headers, one.partition, one.offset,
                      self.lib.rd_kafka_message_timestamp(message, None))

    def ends(self, topic):
        """{partition: (first offset that is there, offset of the next record)}"""
        found = {}
        for number in range(self.partitions(topic)):
            low, high = c.c_int64(), c.c_int64()
            with self.clients.lock:
                self.check(self.lib.rd_kafka_query_watermark_offsets(self.clients.writer.rk, topic.encode(), number, c.byref(low),
                                                                     c.byref(high), self.patience * 1000), "watermarks")
            found[number] = (low.value, high.value)
        return found

    def committed(self, group, topic):
        """{partition: the group's next offset}, those only that it has committed."""
        return {part: offset for part, (offset, _) in self.noted(group, topic).items()}

    def noted(self, group, topic):
        """The same with how many bytes of metadata were committed beside each."""
        count = self.metadata(topic).get(topic, 0)
        with self.clients.lock:
            client = self.clients.get("group", CONSUMER, group_id=group, enable_auto_commit="false",
                                      isolation_level="read_uncommitted")
            asked = self.listed(topic, range(count))
            try:
                self.check(self.lib.rd_kafka_committed(client.rk, asked, self.patience * 1000), "committed")
                found = [asked[0].elements[i] for i in range(asked[0].count)]
                return {one.partition: (one.offset, one.metadata_size) for one in found if one.offset >= 0}
            finally:
                self.lib.rd_kafka_topic_partition_list_destroy(asked)
                self.clients.forget("group")

    # ---- writing ----

    def append(self, record, partition=None, at=None):
        """Puts a record in its topic, by its key unless a partition is named."""
        assert at is None, "the broker sets the time: such a test is of the local log"
        if partition is None:
            partition = partition_of(record.key or b"", self.partitions(record.topic))
        arguments = [Argument(TOPIC, Value(text=record.topic.encode())), Argument(PARTITION, Value(number=partition)),
                     Argument(FLAGS, Value(number=COPY))]
        kept = []
        for kind, data in ((KEY, record.key), (VALUE, record.value)):
            if data is not None:
                kept.append(c.create_string_buffer(data, len(data) + 1))
                arguments.append(Argument(kind, Value(memory=Memory(c.addressof(kept[-1]), len(data)))))
        if record.headers:
            headers = self.lib.rd_kafka_headers_new(len(record.headers))
            for name, data in record.headers:
                self.lib.rd_kafka_header_add(headers, name.encode(), -1, data, -1 if data is None else len(data))
            arguments.append(Argument(HEADERS, Value(pointer=headers)))
        with self.clients.lock:
            client = self.clients.writer
            client.delivered.clear()
            error = self.lib.rd_kafka_produceva(client.rk, (Argument * len(arguments))(*arguments), len(arguments))
            if error:
                raise Broken(self.lib.rd_kafka_error_string(error).decode())
            while not client.delivered:
                self.lib.rd_kafka_poll(client.rk, 100)
            code, partition, offset = client.delivered[0]
        self.check(code, f"produce to {record.topic}")
        return partition, offset

    def fence(self, transactional_id):
        """Takes a transactional id away from whoever has it, and ends what it left open."""
        with self.clients.lock:
            self.clients.forget("fence")
            client = self.clients.get("fence", PRODUCER, transactional_id=transactional_id)
            error = self.lib.rd_kafka_init_transactions(client.rk, self.patience * 1000)
            text = self.lib.rd_kafka_error_string(error).decode() if error else None
            self.clients.forget("fence")
        if text:
            raise Broken(text)

    # ---- what an administrator does ----

    def asked(self, call, made, destroy):
        """An admin call over these objects; waits for its answer."""
        with self.clients.lock:
            client = self.clients.writer
            queue = self.lib.rd_kafka_queue_new(client.rk)
            call(client.rk, (c.c_void_p * len(made))(*made), len(made), None, queue)
            event = self.lib.rd_kafka_queue_poll(queue, self.patience * 1000)
            for one in made:
                destroy(one)
            assert event, "the broker did not answer"
            code, text = self.lib.rd_kafka_event_error(event), self.lib.rd_kafka_event_error_string(event)
            self.lib.rd_kafka_event_destroy(event)
            self.lib.rd_kafka_queue_destroy(queue)
        if code != 0:
            raise Broken(text.decode())

    def drop(self, *topics, wait=True):
        """Deletes topics, as an operator's mistake could; the broker itself hears of it a moment later."""
        if topics:
            self.asked(self.lib.rd_kafka_DeleteTopics, [self.lib.rd_kafka_DeleteTopic_new(name.encode()) for name in topics],
                       self.lib.rd_kafka_DeleteTopic_destroy)
        deadline = time.monotonic() + self.patience
        while wait and set(topics) & set(self.metadata()):
            assert time.monotonic() < deadline, f"{topics} are still there"
            time.sleep(0.01)

    def create(self, topic, partitions, **settings):
        """Makes a topic as Baton would not: other settings, other partitions."""
        text = c.create_string_buffer(512)
        made = self.lib.rd_kafka_NewTopic_new(topic.encode(), partitions, 1, text, 512)
        for name, value in settings.items():
            self.lib.rd_kafka_NewTopic_set_config(made, name.replace("_", ".").encode(), str(value).encode())
        self.asked(self.lib.rd_kafka_CreateTopics, [made], self.lib.rd_kafka_NewTopic_destroy)
