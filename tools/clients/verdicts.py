# How many verdicts fell on each day, from the log itself (pip install esdbclient):
#   python verdicts.py "esdb://reader:…@127.0.0.1:2113" ca.pem
import collections, json, sys
from esdbclient import EventStoreDBClient

ca = open(sys.argv[2]).read() if len(sys.argv) > 2 else None
log = EventStoreDBClient(uri=sys.argv[1], root_certificates=ca)
days = collections.defaultdict(collections.Counter)
for event in log.read_all():
    if event.type != "job.item_checked":  # docs/event-zero.md lists the types
        continue
    day = json.loads(event.metadata)["time"][:10]
    days[day][json.loads(event.data)["status"]] += 1
print(json.dumps({"days": days}))
