// Package registry knows the vendors and makes the connector of one. A new
// vendor is a folder beside this one and a line in its table.
//
// Which vendor a build defaults to is decided at link time:
//
//	go build -ldflags "-X libphoenix/connectors/registry.defaultVendor=HOST"
//
// (a word the table does not have makes every Choose("") fail, naming it).
package registry
