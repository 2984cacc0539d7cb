package single

import (
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strings"

	"github.com/pgherd/pgherd/hosts/pgherd/systemd"
)

// envFile is where the operator's settings of a host, such as api, are.
func envFile(host string) string { return "/etc/pgherd/" + host + ".env" }

// setting is a line of a file of settings; always says that it takes the place of one that is there.
type setting struct {
	name, value string
	always      bool
}

// readEnv is the text of a file of settings; that of a file that is not there is empty.
func (m *machine) readEnv(host string) (string, error) {
	text, err := os.ReadFile(m.path(envFile(host)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// lineOf is a line that gives a setting a value.
func lineOf(name string) *regexp.Regexp { return regexp.MustCompile(`(?m)^[ \t]*` + name + `=(.+)$`) }

// with adds the settings that have a value to the text of a file of settings.
func with(text string, list []setting) string {
	for _, s := range list {
		line := s.name + "=" + s.value
		if strings.ContainsAny(s.value, " ()") {
			line = s.name + `="` + s.value + `"`
		}
		there := lineOf(s.name)
		switch {
		case s.value == "":
		case !there.MatchString(text):
			text = strings.TrimLeft(strings.TrimRight(text, "\n")+"\n"+line+"\n", "\n")
		case s.always:
			text = there.ReplaceAllLiteralString(text, line)
		}
	}
	return text
}

// written is a setting as the operator or setup has written it into the file of a host; empty where nobody has. As for systemd,
// the last line counts.
func (m *machine) written(host, name string) (string, error) {
	text, err := m.readEnv(host)
	found := lineOf(name).FindAllStringSubmatch(text, -1)
	if err != nil || len(found) == 0 {
		return "", err
	}
	return strings.Trim(strings.TrimSpace(found[len(found)-1][1]), `"'`), nil
}

// setTo is a setting as a host has it, from its file or else from its unit.
func (m *machine) setTo(host, name string) (string, error) {
	value, err := m.written(host, name)
	if err != nil || value != "" {
		return value, err
	}
	unit, err := systemd.Variables(host)
	return unit[name], err
}

// reached is where this machine reaches what listens on an address: one that stands for all is that of the machine itself.
func reached(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen // the host itself says what is wrong with it
	}
	if ip, err := netip.ParseAddr(host); host == "" || err == nil && ip == netip.IPv4Unspecified() {
		host = "127.0.0.1"
	} else if err == nil && ip.IsUnspecified() {
		host = "::1"
	}
	return net.JoinHostPort(host, port)
}

// readyURL is where a host says that it is ready.
func (m *machine) readyURL(host string) (string, error) {
	listen, err := m.setTo(host, "PGHERD_OPS_LISTEN")
	return "http://" + reached(listen) + "/readyz", err
}

// agentAddress is where the control plane reaches the agent: on this machine alone, unless the operator says otherwise.
func (m *machine) agentAddress() (string, error) {
	listen, err := m.written("agent", "PGHERD_LISTEN")
	if listen == "" {
		listen = agentListen
	}
	return reached(listen), err
}

// apiURL is where callers reach the API: by the name of the machine, at the port that the API listens on.
func (m *machine) apiURL(s wanted) (string, error) {
	listen, err := m.setTo("api", "PGHERD_LISTEN")
	if err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(listen)
	at := net.JoinHostPort(s.host, port)
	if port == "443" {
		at = strings.TrimSuffix(at, ":443")
	}
	return "https://" + at, err
}
