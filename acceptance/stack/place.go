package stack

import (
	"net"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// Place is a machine of its own, as far as the processes can tell that run there. The zero Place is this machine, where
// everything listens on loopback.
type Place struct {
	// Address is where what runs there listens.
	Address string
	// Name leads to the address. Only a dashboard needs one: pages are of a domain.
	Name string
	// Variables are what every process there has in its environment, beside the rest.
	Variables []string
	// Start starts a process there, on the thread that it dies with.
	Start func(*exec.Cmd) error
}

// address is where to listen.
func (p Place) address() string {
	if p.Address == "" {
		return loopback
	}
	return p.Address
}

// names are those of a certificate of what listens there.
func (p Place) names() []string {
	if p.Address == "" {
		return []string{PublicHost, loopback}
	}
	return append([]string{PublicHost, loopback, p.Address}, strings.Fields(p.Name)...)
}

// host is what others connect to.
func (p Place) host() string {
	if p.Address == "" {
		return PublicHost
	}
	return p.Address
}

// start starts a process there.
func (p Place) start(cmd *exec.Cmd) error {
	if p.Start == nil {
		return cmd.Start()
	}
	return p.Start(cmd)
}

// ServerURL is the superuser's connection to a database of the server: over its socket where the server's loopback is not this
// machine's.
func (s *Stack) ServerURL(database string) string {
	if s.options.On.Address == "" {
		return s.Server.URL(database)
	}
	return socketURL(s.Server.SocketDir(), s.Server.Port(), url.UserPassword("postgres", s.Server.Password()), database)
}

func socketURL(dir string, port int, user *url.Userinfo, database string) string {
	u := url.URL{
		Scheme: "postgres", User: user, Path: "/" + database,
		RawQuery: url.Values{"host": {dir}, "port": {strconv.Itoa(port)}, "sslmode": {"disable"}}.Encode(),
	}
	return u.String()
}

// admitNetwork has a cluster take clients of the network of its address: what initdb writes takes those of loopback only. It is
// the file hba_file of the settings.
func admitNetwork(file, address string) error {
	_, network, err := net.ParseCIDR(address + "/24")
	if err != nil {
		return err
	}
	text := "local all all scram-sha-256\nhost all all " + network.String() + " scram-sha-256\n"
	return os.WriteFile(file, []byte(text), 0o644)
}
