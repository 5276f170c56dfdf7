package signature_test

import (
	"fmt"
	"net/http"
	"time"

	"humanqa/internal/signature"
)

// A receiver keeps the raw body, and checks it before it reads the JSON.
func ExampleVerify() {
	secret, body := []byte("the project's webhook secret"), []byte(`{"event":"job.completed","data":{"jobId":"…"}}`)
	header := http.Header{}
	header.Set(signature.SignatureHeader, signature.Of(secret, body))
	fmt.Println("X-Service-Signature:", header.Get(signature.SignatureHeader))

	fmt.Println("as it came:", signature.Verify(secret, header, body, time.Now()))
	fmt.Println("one byte more:", signature.Verify(secret, header, append(body, ' '), time.Now()))
	fmt.Println("another secret:", signature.Verify([]byte("somebody else's"), header, body, time.Now()))
	// Output:
	// X-Service-Signature: f71e06c73fcf5e73f5cf719cf8f398d9b550b92acf188c2b5871d9d36a442d76
	// as it came: <nil>
	// one byte more: the signature does not match
	// another secret: the signature does not match
}
