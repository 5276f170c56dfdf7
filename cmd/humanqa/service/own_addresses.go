package service

import (
	"cmp"
	"net"
	"net/url"
	"strings"

	"humanqa/internal/guard"
)

// ownAddresses are the addresses of the service and of its servers in the configuration:
// no reviewed page may be there (decisions, "URL under test"). Listeners of another
// process with the same settings count, too; an address that is bound later is added
// then.
func ownAddresses(cfg Config, postgres ...string) *guard.Own {
	own := new(guard.Own)
	for _, address := range []string{cfg.Addr, cfg.AdminAddr, cfg.VoiceAddr, cfg.EventStoreListen, cfg.EventStoreListenInsecure,
		cfg.PostgresListen} {
		own.Listens(address)
	}
	own.Site(cfg.BaseURL)
	peers := func(hosts, port string) {
		for host := range strings.SplitSeq(hosts, ",") {
			if _, _, err := net.SplitHostPort(host); err != nil {
				host = net.JoinHostPort(strings.Trim(host, "[]"), port)
			}
			own.Peer(host)
		}
	}
	for _, dsn := range postgres {
		if u, err := url.Parse(dsn); err == nil && dsn != "" {
			peers(cmp.Or(u.Query().Get("host"), u.Host), cmp.Or(u.Query().Get("port"), "5432"))
		}
	}
	if u, err := url.Parse(cfg.EventStoreURL); err == nil {
		peers(u.Host, "2113")
	}
	return own
}
