// Command receiver receives webhooks. The project's webhookUrl leads here.
//
//	WEBHOOK_SECRET=… go run ./integrations/clients/go/examples/receiver
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"humanqa/integrations/clients/go/humanqa"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+cmp.Or(os.Getenv("PORT"), "8000")) //nolint:noctx // it listens until its end
	if err == nil {
		fmt.Println("listening on port", listener.Addr().(*net.TCPAddr).Port)
		server := http.Server{Handler: http.HandlerFunc(receive), ReadHeaderTimeout: time.Minute}
		err = server.Serve(listener)
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil || humanqa.Verify(os.Getenv("WEBHOOK_SECRET"), r.Header, body) != nil {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	w.WriteHeader(http.StatusNoContent) // within 10 seconds; the work comes after
	var told humanqa.AccountEvent
	if err := json.Unmarshal(body, &told); err != nil {
		fmt.Println(err)
		return
	}
	if told.Event != "job.completed" {
		fmt.Println(told.Event)
		return
	}
	var completed humanqa.WebhookJobCompleted // told.Event names the type of the whole body
	if err := json.Unmarshal(body, &completed); err == nil {
		fmt.Println(completed.JobID, completed.Data.OverallStatus)
	}
}
