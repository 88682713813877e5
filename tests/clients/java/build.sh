#!/bin/bash
# Makes a folder with a Java runtime of Debian's JDK, the AWS SDK for Java from Maven Central and the compiled programs.
# Arguments: the folder to make, this folder, the folder of the page's example.
set -euo pipefail

out=$1
source=$2
page=$3
jdk=/usr/lib/jvm/java-17-openjdk-amd64

if ! command -v mvn >/dev/null || [ ! -d "$jdk/jmods" ]; then
  echo "installing Debian packages: maven openjdk-17-jdk-headless"
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends maven openjdk-17-jdk-headless
fi
export JAVA_HOME=$jdk

mkdir -p "$out/lib"
mvn --batch-mode --quiet -f "$source/pom.xml" -DoutputDirectory="$out/lib" \
  org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies
"$jdk/bin/javac" -cp "$out/lib/*" -d "$out/classes" "$source/Client.java" "$page/Hello.java"
"$jdk/bin/jar" --create --file "$out/lib/client.jar" -C "$out/classes" .
rm -rf "$out/classes"
"$jdk/bin/jlink" --strip-java-debug-attributes --no-header-files --no-man-pages --output "$out/runtime" \
  --add-modules java.base,java.desktop,java.logging,java.management,java.naming,java.net.http,java.security.jgss,java.xml,jdk.crypto.ec,jdk.net,jdk.unsupported
# What the virtual machine needs and the image's root file system has not.
cp --dereference /usr/lib/x86_64-linux-gnu/libstdc++.so.6 "$out/runtime/lib/"
