package pgdb

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/lib/pq"
)

// ErrURL says that the URL of the metadata database cannot be read. The cause is left out because it would show the password.
var ErrURL = errors.New("the URL of the metadata database cannot be read: it is " +
	"postgres://USER:PASSWORD@HOST1:5432,HOST2:5432/DATABASE, or key=value pairs")

// ErrTarget says that the URL asks for servers that cannot be written to.
var ErrTarget = errors.New("the URL of the metadata database: target_session_attrs must be read-write or primary, or left out")

// parse reads a URL or key=value string. Where several hosts are named, the first is in the Config and the others in its Multi.
func parse(text string) (pq.Config, error) {
	plain, err := withoutHosts(text)
	if err != nil {
		return pq.Config{}, err
	}
	cfg, err := pq.NewConfig(plain)
	if err != nil || strings.HasSuffix(strings.TrimSpace(plain), "=") { // whose value would be what is appended for listenURL
		return pq.Config{}, ErrURL
	}
	switch cfg.TargetSessionAttrs {
	case pq.TargetSessionAttrsPrimary:
	case "", pq.TargetSessionAttrsAny, pq.TargetSessionAttrsReadWrite:
		cfg.TargetSessionAttrs = pq.TargetSessionAttrsReadWrite
	default:
		return pq.Config{}, ErrTarget
	}
	return cfg, nil
}

// isURL reports whether the driver takes a text for a URL, and not for key=value pairs.
func isURL(text string) bool {
	return strings.HasPrefix(text, "postgres://") || strings.HasPrefix(text, "postgresql://")
}

// withoutHosts turns a URL with several hosts, each with a port of its own as in libpq, into one with the parameters host and
// port, which the driver knows. Another text stays as it is.
func withoutHosts(text string) (string, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if !isURL(text) {
		return text, nil
	}
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, rest := rest[:end], rest[end:]
	at := strings.LastIndex(authority, "@") + 1
	if !strings.Contains(authority[at:], ",") {
		return text, nil
	}
	var hosts, ports []string
	for part := range strings.SplitSeq(authority[at:], ",") {
		host, port, err := hostAndPort(part)
		if err != nil {
			return "", err
		}
		hosts, ports = append(hosts, host), append(ports, port)
	}
	if !strings.HasPrefix(rest, "/") {
		rest = "/" + rest
	}
	u, err := url.Parse(scheme + "://" + authority[:at] + rest)
	if err != nil {
		return "", ErrURL
	}
	query := u.Query()
	if query.Has("port") { // as the driver wants it: the ports apart from the hosts
		ports = []string{query.Get("port")}
	}
	query.Set("host", strings.Join(hosts, ","))
	query.Set("port", strings.Join(ports, ","))
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// defaultPort is PostgreSQL's.
const defaultPort = "5432"

func hostAndPort(text string) (host, port string, err error) {
	host, port = text, defaultPort
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		host = text[1 : len(text)-1]
	} else if strings.Contains(text, ":") {
		if host, port, err = net.SplitHostPort(text); err != nil {
			return "", "", ErrURL
		}
	}
	if _, err = strconv.ParseUint(port, 10, 16); err != nil || host == "" {
		return "", "", ErrURL
	}
	if host, err = url.PathUnescape(host); err != nil {
		return "", "", ErrURL
	}
	return host, port, nil
}

// listenURL is the URL for a connection that only listens. The driver's listener takes a text, and would wait for ever.
func listenURL(text string, connect time.Duration) (string, error) {
	if _, err := parse(text); err != nil {
		return "", err
	}
	plain, err := withoutHosts(text)
	if err != nil {
		return "", err
	}
	more := map[string]string{
		"connect_timeout":      strconv.Itoa(max(1, int(connect.Seconds()))),
		"target_session_attrs": "read-write", "application_name": "pgherd",
	}
	if !isURL(plain) {
		for name, value := range more { // the last one counts
			plain += fmt.Sprintf(" %s=%s", name, value)
		}
		return plain, nil
	}
	u, err := url.Parse(plain)
	if err != nil {
		return "", ErrURL
	}
	query := u.Query()
	for name, value := range more {
		query.Set(name, value)
	}
	u.RawQuery = query.Encode()
	return u.String(), nil
}

// Listen makes a listener, which connects in the background and again, after a pause between min and max, when its connection is
// lost, is silent for longer than that, or has lived so long.
func (c Config) Listen(silent, lives, minPause, maxPause time.Duration) (*pq.Listener, error) {
	at, err := listenURL(c.URL, c.withDefaults().ConnectTimeout)
	if err != nil {
		return nil, err
	}
	return pq.NewDialListener(dialer{limit: silent, lives: lives}, at, minPause, maxPause, nil), nil
}

// each is a Config for each host by itself.
func each(cfg pq.Config) []pq.Config {
	list := []pq.Config{cfg.Clone()}
	for _, m := range cfg.Multi {
		one := cfg.Clone()
		one.Host, one.Hostaddr, one.Port = m.Host, m.Hostaddr, m.Port
		list = append(list, one)
	}
	for i := range list {
		list[i].Multi = nil
	}
	return list
}

// address names the server of a Config in errors.
func address(cfg pq.Config) string {
	host := cfg.Host
	if cfg.Hostaddr.IsValid() {
		host = cfg.Hostaddr.String()
	}
	return net.JoinHostPort(host, strconv.Itoa(int(cfg.Port)))
}
