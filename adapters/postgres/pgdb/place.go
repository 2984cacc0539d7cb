package pgdb

import (
	"fmt"
	"strings"
)

// Hosts are the hosts of the URL: names and addresses, and not the folders of sockets.
func (c Config) Hosts() (hosts []string) {
	cfg, err := parse(c.URL)
	if err != nil {
		return nil
	}
	for _, one := range each(cfg) {
		if one.Host != "" && !strings.HasPrefix(one.Host, "/") && !strings.HasPrefix(one.Host, "@") {
			hosts = append(hosts, one.Host)
		}
		if one.Hostaddr.IsValid() {
			hosts = append(hosts, one.Hostaddr.String())
		}
	}
	return hosts
}

// Place names the metadata database as people do, without user and password: "database pgherd at db1:5432, db2:5432".
func (c Config) Place() string {
	cfg, err := parse(c.URL)
	if err != nil {
		return "the URL's database"
	}
	var at []string
	for _, one := range each(cfg) {
		at = append(at, fmt.Sprintf("%s:%d", one.Host, one.Port))
	}
	return fmt.Sprintf("database %s at %s", cfg.Database, strings.Join(at, ", "))
}
