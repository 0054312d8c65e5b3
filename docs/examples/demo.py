"""Train the paper's kind of network on scikit-learn's digits and set it beside back-propagation: `make demo`."""

import time

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from pilae import SHLN, PILAEClassifier


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16, y, stratify=y, random_state=0)
    print(f"scikit-learn's digits: {len(X_train)} training rows, {len(X_test)} held out, {X.shape[1]} columns\n")

    start = time.perf_counter()
    model = PILAEClassifier(depth=2, head=SHLN(1000), verbose=1).fit(X_train, y_train)
    seconds = time.perf_counter() - start

    print(f"\n{'layer':<22}{'width':>7}{'rank in':>9}{'reconstruction error':>23}{'seconds':>10}")
    for k, layer in enumerate(model.layers_):
        name = f"autoencoder {k + 1}"
        print(f"{name:<22}{layer.width:>7}{layer.rank:>9}{layer.reconstruction_error:>23.4f}{layer.seconds:>10.3f}")
    print(f"head (SHLN): {model.head_width_} neurons, output ridge {model.ridge_:g}, chosen by leave-one-out")

    start = time.perf_counter()
    hidden = tuple(layer.width for layer in model.layers_)
    mlp = MLPClassifier(hidden, max_iter=1000, random_state=0).fit(X_train, y_train)
    mlp_seconds = time.perf_counter() - start

    start = time.perf_counter()
    auto = PILAEClassifier(random_state=0).fit(X_train, y_train)  # no structure given: found by leave-one-out
    auto_seconds = time.perf_counter() - start

    print(f"\n{'':<22}{'seconds':>10}{'leave-one-out accuracy':>25}{'test accuracy':>16}")
    print(f"{'PILAEClassifier above':<22}{seconds:>10.2f}{model.loo_score_:>25.4f}{model.score(X_test, y_test):>16.4f}")
    print(f"{'PILAEClassifier()':<22}{auto_seconds:>10.2f}{auto.loo_score_:>25.4f}{auto.score(X_test, y_test):>16.4f}")
    print(f"{'MLPClassifier ' + str(hidden):<22}{mlp_seconds:>10.2f}{'-':>25}{mlp.score(X_test, y_test):>16.4f}")

    auto.report(X_test, y_test, title="Handwritten digits").save("pilae-demo.html")
    print("\nA report on PILAEClassifier() was written to pilae-demo.html")


if __name__ == "__main__":
    main()
