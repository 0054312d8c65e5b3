"""What somebody would write instead of `pilae fit`: read a CSV file, fit skrub's pipeline with boosting, keep it.

python studies/tables/skrub_script.py train.csv target model.joblib classifier
"""

import sys

import joblib
import pandas as pd
import skrub

if __name__ == "__main__":
    path, target, output, kind = sys.argv[1:]
    frame = pd.read_csv(path)
    y = frame.pop(target)
    joblib.dump(skrub.tabular_pipeline(kind).fit(frame, y), output)
