package pg

import (
	"strconv"
	"strings"
)

// Major is the major version at the beginning of what a server calls its version; 0: there is none.
func Major(version string) int {
	major, err := strconv.Atoi(version[:len(version)-len(strings.TrimLeft(version, "0123456789"))])
	if err != nil {
		return 0
	}
	return major
}
