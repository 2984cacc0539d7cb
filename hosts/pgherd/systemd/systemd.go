// Package systemd has the units that pgherd's hosts run as.
package systemd

import (
	"embed"
	"strings"
)

//go:embed *.service
var units embed.FS

// Variables are what the unit of a host, such as api, has in its environment.
func Variables(host string) (map[string]string, error) {
	text, err := units.ReadFile("pgherd-" + host + ".service")
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if given, found := strings.CutPrefix(strings.TrimSpace(line), "Environment="); found {
			name, value, _ := strings.Cut(given, "=")
			set[name] = value
		}
	}
	return set, err
}
