//go:build ignore

// How many verdicts fell on each day, from the log itself:
//
//	go run verdicts.go "esdb://reader:…@127.0.0.1:2113?tlsCaFile=…"
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"time"

	"github.com/EventStore/EventStore-Client-Go/v4/esdb"
)

func main() {
	settings, err := esdb.ParseConnectionString(os.Args[1])
	check(err)
	client, err := esdb.NewClient(settings)
	check(err)
	events, err := client.ReadAll(context.Background(), esdb.ReadAllOptions{}, math.MaxInt64)
	check(err)
	days := map[string]map[string]int{}
	for {
		e, err := events.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		check(err)
		if e.Event == nil || e.Event.EventType != "job.item_checked" { // docs/event-zero.md lists the types
			continue
		}
		var meta struct{ Time time.Time }
		var data struct{ Status string }
		check(errors.Join(json.Unmarshal(e.Event.UserMetadata, &meta), json.Unmarshal(e.Event.Data, &data)))
		day := meta.Time.Format(time.DateOnly)
		if days[day] == nil {
			days[day] = map[string]int{}
		}
		days[day][data.Status]++
	}
	text, err := json.Marshal(map[string]any{"days": days})
	check(err)
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
