package pki

import (
	"fmt"
	"os"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

const contextName = "sandbox"

// Kubeconfig issues a client certificate for the identity and writes a kubeconfig
// with it to path, for the API server at the given URL. Everything is inside the
// file, so it can be copied anywhere.
func (a *Authority) Kubeconfig(id Identity, server, path string) error {
	if exists(path) {
		return nil
	}

	if err := a.Issue(id); err != nil {
		return err
	}

	config := api.NewConfig()
	cluster, user := api.NewCluster(), api.NewAuthInfo()
	cluster.Server = server

	for from, to := range map[string]*[]byte{
		a.CA():          &cluster.CertificateAuthorityData,
		a.Cert(id.File): &user.ClientCertificateData,
		a.Key(id.File):  &user.ClientKeyData,
	} {
		data, err := readFile(from)
		if err != nil {
			return fmt.Errorf("make a kubeconfig: %w", err)
		}

		*to = data
	}

	config.Clusters[contextName], config.AuthInfos[contextName] = cluster, user
	config.Contexts[contextName] = &api.Context{Cluster: contextName, AuthInfo: contextName}
	config.CurrentContext = contextName

	if err := clientcmd.WriteToFile(*config, path+".new"); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}

	if err := os.Rename(path+".new", path); err != nil {
		return fmt.Errorf("write a kubeconfig: %w", err)
	}

	return nil
}
