package pooler

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
)

// tcpTables list the sockets of the agent's network namespace, those that listen first.
var tcpTables = []string{"/proc/net/tcp", "/proc/net/tcp6"}

// listening reports whether somebody listens on a TCP port of this machine, at whatever address. Nobody is connected to for that:
// PgBouncer would log each look. It is not known where the tables cannot be read.
func listening(port int) (open, known bool) {
	for _, table := range tcpTables {
		file, err := os.Open(table)
		if err != nil {
			continue // a machine without IPv6 has no table for it
		}
		known = true
		open = open || lists(file, port)
		_ = file.Close() // it was only read
	}
	return open, known
}

// listens is the state of a socket that listens.
const listens = "0A"

// lists looks for a socket that listens on a port among the first lines of a table, whose fields are a number, the local and the
// remote address, each with its port in hexadecimal, and the state.
func lists(table io.Reader, port int) bool {
	suffix := fmt.Sprintf(":%04X", port)
	lines := bufio.NewScanner(table)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) < 4 || fields[0] == "sl": // the heading
		case fields[3] != listens:
			return false
		case strings.HasSuffix(fields[1], suffix):
			return true
		}
	}
	return false
}
