package service

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
)

// certificate is HUMANQA_TLS_CERT and HUMANQA_TLS_KEY. A renewed one is taken
// with the next connection; while its two files do not fit together, the one
// before goes on.
type certificate struct {
	cert, key string // paths
	log       logrus.FieldLogger

	mu      sync.Mutex
	current *tls.Certificate
	read    [2]time.Time // when the files that were last read were written
}

// openCertificate reads both files.
func openCertificate(cert, key string, log logrus.FieldLogger) (*certificate, error) {
	c := &certificate{cert: cert, key: key, log: log}
	return c, c.load()
}

func (c *certificate) load() error {
	var written [2]time.Time
	for i, file := range []string{c.cert, c.key} {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		written[i] = info.ModTime()
	}
	if c.current != nil && written == c.read {
		return nil
	}
	c.read = written
	loaded, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err != nil {
		return fmt.Errorf("read %s and %s: %w", c.cert, c.key, err)
	}
	c.current = &loaded
	return nil
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.load(); err != nil {
		c.log.WithError(err).Warn("the certificate before goes on")
	}
	return c.current, nil
}

// config is for a listener; requests are HTTP/1.1, as without TLS.
func (c *certificate) config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, GetCertificate: c.get}
}
